package render

import (
	"cmp"
	"fmt"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
	"sluice/specs/graph"
)

// stepTable returns a table of steps and gates: what they are called, their state, and the rest, which may be cut.
func stepTable() *console.Table {
	return &console.Table{Indent: 2, Columns: []console.Column{{Most: nameMost}, {Least: stateLeast}, {Fit: console.Cut}}}
}

// Limits of its columns: the most cells of a name, and the least of a state.
const (
	nameMost   = 46
	stateLeast = 10
)

// StepLines returns a step in lines that fit the terminal.
func StepLines(c *console.Console, s daemon.StepStatus, now time.Time) []string {
	t := stepTable()
	t.Row(stepCells(s, now)...)
	return c.TableRows(t, c.Width())[0]
}

// GateLines returns a gate in lines that fit the terminal.
func GateLines(c *console.Console, g daemon.GateStatus) []string {
	t := stepTable()
	t.Row(gateCells(g)...)
	return c.TableRows(t, c.Width())[0]
}

func stepCells(s daemon.StepStatus, now time.Time) []console.Cell {
	sign, style := Mark(s.State)
	var parts []string
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
	return []console.Cell{
		console.Joined(console.Styled(sign, style), console.Styled(" "+text.Title(s.ID, s.Name), console.Plain)),
		console.Styled(s.State, style), dotted(parts),
	}
}

func gateCells(g daemon.GateStatus) []console.Cell {
	sign, style := Mark(g.State)
	state := g.State
	if state == "" || state == engine.Undone { // its work was undone: it judges the next attempt
		sign, style, state = "◇", console.Plain, ""
	}
	if (g.State == engine.ByRoute || g.State == engine.Refused) && g.Outcome != "" && g.Outcome != engine.OutcomeFail {
		sign, state = "↷", g.Outcome
	}
	if vetoed(g) {
		state = Failed(g.Outcome, true)
	}
	if g.Due {
		sign, style, state = "·", console.Dim, Due
	}
	parts := []string{g.Level}
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
	return []console.Cell{
		console.Joined(console.Styled("  "+sign, style), console.Styled(" "+text.Title(g.ID, g.Name), console.Plain)),
		console.Styled(state, style), dotted(parts),
	}
}

// dotted joins what there is to say with dim dots.
func dotted(parts []string) console.Cell {
	var cells []console.Cell
	for i, p := range parts {
		if i > 0 {
			cells = append(cells, console.Styled(" · ", console.Dim))
		}
		cells = append(cells, console.Styled(p, console.Plain))
	}
	return console.Joined(cells...)
}

func listLines(c *console.Console, l *daemon.ListStatus, width int) (out []string) {
	if l == nil {
		return nil
	}
	add := func(indent int, cells ...console.Cell) {
		out = append(out, c.WrappedLines(width, indent, console.Joined(cells...))...)
	}
	head := fmt.Sprintf("%d of %s done", l.Done, text.Plural(l.Total, "task"))
	head += NotDone(l.Tally)
	add(6, console.Styled(text.Line(l.File)+": ", console.Dim), console.Styled(head, console.Plain))
	if l.Fault != "" {
		add(6, console.Styled(text.Line(l.Fault), console.Red))
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
			for _, gate := range t.Asks {
				line += ", " + gate + " asks you"
			}
		} else if t.Why != "" {
			line = Because(line, t.Why)
		}
		add(8, console.Styled(text.Line(line), console.Plain))
	}
	if left > tasksShown {
		add(8, console.Styled(fmt.Sprintf("and %d more", left-tasksShown), console.Plain))
	}
	return out
}

// tasksShown is how many unfinished tasks a status names.
const tasksShown = 20

// State returns the state of a step or gate in the words of its picture.
func State(state string) string { return graph.Words(state) }

// GateState describes the state of a gate.
func GateState(g daemon.GateStatus) string {
	if g.Due {
		return Due
	}
	return cmp.Or(State(g.State), "not reached yet")
}

// NotDone names the tasks of a list that failed or are blocked, to follow a count: ", 2 failed".
func NotDone(t engine.Tally) (words string) {
	if t.Failed > 0 {
		words = fmt.Sprintf(", %d failed", t.Failed)
	}
	if t.Blocked > 0 {
		words += fmt.Sprintf(", %d blocked", t.Blocked)
	}
	return words
}

// NearBudget says which limit is near, and what is used of it.
func NearBudget(near string) string { return "near its budget: " + text.Line(near) }

// SpecChanged says that a run keeps a spec that its file no longer has.
const SpecChanged = "the spec's file has changed since; this run keeps the old one"
