package render

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/text"
)

// PictureNotes returns what a picture of a run shows beside the states: a line about each step and gate
// by id, such as "attempt 2 · 33m", and how often each gate sent work back, by "fail" or the route.
func PictureNotes(r daemon.RunStatus, now time.Time) (notes map[string]string, taken map[string]map[string]int) {
	notes, taken = map[string]string{}, map[string]map[string]int{}
	for _, s := range r.Steps {
		var parts []string
		if s.List != nil && s.List.Total > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", s.List.Done, text.Plural(s.List.Total, "task")))
		}
		if s.Attempt > 1 {
			parts = append(parts, fmt.Sprintf("attempt %d", s.Attempt))
		}
		switch s.State {
		case engine.Running, engine.Ready, engine.Signalled, engine.Gating:
			if !s.Since.IsZero() {
				parts = append(parts, Ago(now.Sub(s.Since)))
			}
		}
		notes[s.ID] = strings.Join(parts, " · ")
		for _, g := range s.Gates {
			if g.Implicit {
				continue
			}
			if g.Round > 1 {
				notes[g.ID] = fmt.Sprintf("round %d", g.Round)
			}
			taken[g.ID] = map[string]int{}
			maps.Copy(taken[g.ID], g.Routes)
			taken[g.ID][engine.OutcomeFail] = g.Count
		}
	}
	return notes, taken
}
