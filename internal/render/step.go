package render

import (
	"cmp"
	"fmt"
	"slices"
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
	return standingLines(c, stepCells(s, now))
}

// GateLines returns a gate in lines that fit the terminal.
func GateLines(c *console.Console, g daemon.GateStatus, now time.Time) []string {
	return standingLines(c, gateCells(g, now))
}

func standingLines(c *console.Console, cells []console.Cell) []string {
	t := stepTable()
	t.Row(cells...)
	return c.TableRows(t, c.Width())[0]
}

// Standing is how a step or a gate stands: its sign, its state, and what else there is to say of it.
type Standing struct {
	Sign, Style, State string
	Parts              []string
}

// cells returns it as a row of a stepTable; more follows the parts, between dim dots.
func (s Standing) cells(indent, title string, more ...string) []console.Cell {
	var words []console.Cell
	for i, p := range slices.Concat(s.Parts, more) {
		if i > 0 {
			words = append(words, console.Styled(" · ", console.Dim))
		}
		words = append(words, console.Styled(p, console.Plain))
	}
	return []console.Cell{
		console.Joined(console.Styled(indent+s.Sign, s.Style), console.Styled(" "+title, console.Plain)),
		console.Styled(s.State, s.Style), console.Joined(words...),
	}
}

// StepStands returns how a step stands.
func StepStands(s daemon.StepStatus, now time.Time) Standing {
	out := Standing{State: s.State}
	out.Sign, out.Style = Mark(s.State)
	if s.Attempt > 1 {
		out.Parts = append(out.Parts, fmt.Sprintf("attempt %d", s.Attempt))
	}
	if since := Ago(now.Sub(s.Since)); !s.Since.IsZero() {
		switch s.State { // for what is over, it is no duration
		case engine.Passed, engine.Skipped, engine.Routed, engine.Superseded, engine.RunFailed:
			since += " ago"
		}
		out.Parts = append(out.Parts, since)
	}
	if s.Held != nil {
		out.Parts = append(out.Parts, "taken over"+Who(s.Held))
	}
	return out
}

func stepCells(s daemon.StepStatus, now time.Time) []console.Cell {
	var more []string
	for _, words := range []string{s.Role, Quoted(s.Summary)} {
		if words != "" {
			more = append(more, words)
		}
	}
	return StepStands(s, now).cells("", text.Title(s.ID, s.Name), more...)
}

// GateStands returns how a gate stands. Its state is "" if it is not open.
func GateStands(g daemon.GateStatus, now time.Time) Standing {
	out := Standing{State: g.State, Parts: []string{g.Level}}
	out.Sign, out.Style = Mark(g.State)
	switch {
	case g.Due:
		out.Sign, out.Style, out.State = "·", console.Dim, Due
	case g.State == "" || g.State == engine.Undone: // its work was undone: it judges the next attempt
		out.Sign, out.Style, out.State = "◇", console.Plain, ""
	case (g.State == engine.ByRoute || g.State == engine.Refused) && g.Outcome != "" && g.Outcome != engine.OutcomeFail:
		out.Sign, out.State = "↷", g.Outcome
	}
	if vetoed(g) {
		out.State = Failed(g.Outcome, true)
	}
	if g.Forced {
		out.Parts = append(out.Parts, "forced")
	}
	if g.State == engine.OnWindow {
		out.Parts = append(out.Parts, Ago(g.Until.Sub(now))+" left")
	}
	if g.Score != nil {
		out.Parts = append(out.Parts, fmt.Sprintf("score %g", *g.Score))
	}
	out.Parts = append(out.Parts, Counts(g.Count, g.Routes, g.Max)...)
	if g.ByKind != "" && (g.State == engine.Approved || g.State == engine.Refused || g.State == engine.ByRoute) {
		out.Parts = append(out.Parts, "by "+text.Line(By(g.ByKind, g.By)))
	}
	return out
}

func gateCells(g daemon.GateStatus, now time.Time) []console.Cell {
	var why []string
	if g.Why != "" {
		why = append(why, Why(Cause(g.Why)))
	}
	return GateStands(g, now).cells("  ", text.Title(g.ID, g.Name), why...)
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
