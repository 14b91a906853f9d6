package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// NameWidth returns the width of the column of ids and names.
func NameWidth(r daemon.RunStatus) int {
	w := 0
	for _, s := range r.Steps {
		w = max(w, len(text.Title(s.ID, s.Name)))
		for _, g := range s.Gates {
			w = max(w, len(text.Title(g.ID, g.Name))+2)
		}
	}
	return min(w, maxName)
}

// maxName is the greatest width of that column.
const maxName = 44

func StepLine(c *console.Console, s daemon.StepStatus, width int, now time.Time) string {
	sign, style := Mark(s.State)
	parts := []string{c.Paint(style, console.Pad(s.State, 10))}
	if s.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", s.Attempt))
	}
	if since := Ago(now.Sub(s.Since)); !s.Since.IsZero() {
		switch s.State { // for what is over, it is no duration
		case engine.Passed, engine.Skipped, engine.Routed, engine.Superseded, engine.RunFailed:
			since += " ago"
		}
		parts = append(parts, since)
	}
	if s.Role != "" {
		parts = append(parts, s.Role)
	}
	if s.Held != nil {
		parts = append(parts, "taken over"+Who(s.Held))
	}
	if s.Summary != "" {
		parts = append(parts, text.Line(s.Summary))
	}
	return fmt.Sprintf("  %s %s  %s", c.Paint(style, sign), console.Pad(console.Clip(text.Title(s.ID, s.Name), width), width), strings.Join(parts, c.Paint(console.Dim, " · ")))
}

func GateLine(c *console.Console, g daemon.GateStatus, width int) string {
	sign, style := Mark(g.State)
	state := g.State
	if state == "" || state == engine.Undone { // its work was undone: it judges the next attempt
		sign, style, state = "◇", console.Plain, "-"
	}
	if (g.State == engine.ByRoute || g.State == engine.Refused) && g.Outcome != "" && g.Outcome != engine.OutcomeFail {
		sign, state = "↷", g.Outcome
	}
	if g.Due {
		sign, style, state = "·", console.Dim, Due
	}
	parts := []string{c.Paint(style, console.Pad(state, 10)), g.Level}
	if g.Forced {
		parts = append(parts, "forced")
	}
	parts = append(parts, Counts(g.Count, g.Routes, g.Max)...)
	if g.Score != nil {
		parts = append(parts, fmt.Sprintf("score %g", *g.Score))
	}
	if g.Why != "" {
		parts = append(parts, Why(g.Why))
	}
	if g.ByKind != "" && (g.State == engine.Approved || g.State == engine.Refused || g.State == engine.ByRoute) {
		parts = append(parts, "by "+By(g.ByKind, g.By))
	}
	return fmt.Sprintf("    %s %s  %s", c.Paint(style, sign), console.Pad(console.Clip(text.Title(g.ID, g.Name), width-2), width-2), strings.Join(parts, c.Paint(console.Dim, " · ")))
}

func listLines(c *console.Console, l *daemon.ListStatus) []string {
	if l == nil {
		return nil
	}
	head := fmt.Sprintf("%d of %s done", l.Done, text.Plural(l.Total, "task"))
	if l.Failed > 0 {
		head += fmt.Sprintf(", %d failed", l.Failed)
	}
	if l.Blocked > 0 {
		head += fmt.Sprintf(", %d blocked", l.Blocked)
	}
	out := []string{"      " + c.Paint(console.Dim, text.Line(l.File)+": ") + head}
	if l.Fault != "" {
		out = append(out, "      "+c.Paint(console.Red, text.Line(l.Fault)))
	}
	left := 0
	for _, t := range l.Tasks {
		if t.State == engine.TaskDone {
			continue
		}
		if left++; left > tasksShown {
			continue
		}
		line := t.ID + " is " + t.State
		if t.Title != "" {
			line = t.ID + " (" + t.Title + ") is " + t.State
		}
		if t.Tries > 0 {
			line += fmt.Sprintf(", try %d", t.Tries+1)
		}
		if t.Run != "" {
			line += ": " + t.Run
		} else if t.Why != "" {
			line = Because(line, t.Why)
		}
		out = append(out, "        "+text.Line(line))
	}
	if left > tasksShown {
		out = append(out, fmt.Sprintf("        and %d more", left-tasksShown))
	}
	return out
}

// tasksShown is how many unfinished tasks a status names.
const tasksShown = 20

// GateState describes the state of a gate.
func GateState(g daemon.GateStatus) string {
	if g.Due {
		return Due
	}
	return cmp.Or(g.State, "not open")
}
