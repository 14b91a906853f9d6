package render

import (
	"fmt"
	"slices"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// endShown is how many steps, and how many gates, the end of a run names.
const endShown = 3

// EndLines returns what an ended run has to say: the words of its last steps, who decided its last
// gates, and what it used.
func EndLines(c *console.Console, r daemon.RunStatus) (out []string) {
	var said, decided [][2]string
	for _, s := range r.Steps {
		if s.State == engine.Passed && s.Summary != "" {
			said = append(said, [2]string{s.ID, Quoted(s.Summary)})
		}
		for _, g := range s.Gates {
			kinds := []string{"reviewer", "window", "human", "exhausted"}
			if g.Implicit || g.Outcome == "" || !slices.Contains(kinds, g.ByKind) {
				continue
			}
			words := g.Outcome
			if words == engine.OutcomePass {
				words = "passed"
			} else {
				words = Failed(words, vetoed(g))
			}
			if g.Round > 1 {
				words += fmt.Sprintf(" in round %d", g.Round)
			}
			words += " by " + By(g.ByKind, g.By)
			decided = append(decided, [2]string{g.ID, words})
		}
	}
	said, decided = said[max(len(said)-endShown, 0):], decided[max(len(decided)-endShown, 0):]
	lines := append(said, decided...)
	if used := SpentShort(r.Usage, engine.Usage{}); used != "" {
		lines = append(lines, [2]string{"used", used})
	}
	t := &console.Table{Indent: 2, Columns: []console.Column{{}, {Fit: console.Cut}}}
	for _, l := range lines {
		t.Row(console.Styled(l[0], console.Dim), console.Styled(l[1], console.Plain))
	}
	for _, l := range c.TableRows(t, c.Width()) {
		out = append(out, l...)
	}
	return out
}
