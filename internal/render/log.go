package render

import (
	"encoding/json"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/text"
)

// Line formats a fact for a person on one line, cut at the terminal's width: time, run (unless known), subject, words.
func Line(c *console.Console, l daemon.Line, s FactLine, withRun bool) string {
	head, words := LineParts(l, s, withRun)
	return console.Clip(c.Paint(console.Dim, head)+c.Paint(s.Style, words), c.Width())
}

// LineParts returns the time, run and subject of a fact's line, and its words.
func LineParts(l daemon.Line, s FactLine, withRun bool) (head, words string) {
	run, subject := whereOf(l, s, withRun)
	if run != "" {
		run += "  "
	}
	return Clock(l.At) + "  " + run + console.Pad(subject, subjectLeast) + "  ", s.Text
}

// Log formats facts, one after another, for the terminal; the zero value is ready. Words that do not fit are wrapped.
type Log struct {
	WithRun bool
	run     int // the widest run so far
	subject int // the widest step or gate so far, in a terminal
}

// Lines returns a fact in lines that fit the terminal.
func (g *Log) Lines(c *console.Console, l daemon.Line, s FactLine) []string {
	cells := factCells(l, s, g.WithRun)
	if c.Width() > 0 {
		g.run = max(g.run, min(cells[1].Width(), runMost))
		g.subject = max(g.subject, min(cells[2].Width(), subjectMost))
	}
	t := &console.Table{Columns: []console.Column{
		{}, {Least: g.run, Most: runMost}, {Least: max(g.subject, subjectLeast), Most: subjectMost}, {Fit: console.Wrapped}}}
	t.Row(cells...)
	return c.TableRows(t, c.Width())[0]
}

func factCells(l daemon.Line, s FactLine, withRun bool) []console.Cell {
	run, subject := whereOf(l, s, withRun)
	return []console.Cell{
		console.Styled(Clock(l.At), console.Dim), console.Styled(run, console.Dim),
		console.Styled(subject, console.Dim), console.Styled(s.Text, s.Style)}
}

// whereOf returns the run of a fact, if it is to be named, and its step or gate.
func whereOf(l daemon.Line, s FactLine, withRun bool) (run, subject string) {
	if withRun {
		return text.Line(l.Run()), text.Line(s.Subject)
	}
	// of a child run, beside its parent's
	return "", text.Line(strings.TrimSpace(childName(l.Run()) + " " + s.Subject))
}

// Said returns the important ones of the facts that a command has brought about, in lines that fit the
// terminal: run, subject and words.
func Said(c *console.Console, facts []json.RawMessage) (out []string) {
	t := &console.Table{Columns: []console.Column{
		{Most: runMost}, {Least: subjectLeast, Most: subjectMost}, {Fit: console.Wrapped}}}
	for _, raw := range facts {
		if f := Fact(raw); f.Key {
			t.Row(console.Styled(text.Line(daemon.Line{Fact: raw}.Run()), console.Dim),
				console.Styled(text.Line(f.Subject), console.Dim), console.Styled(f.Text, f.Style))
		}
	}
	for _, lines := range c.TableRows(t, c.Width()) {
		out = append(out, lines...)
	}
	return out
}

// Limits of the columns of runs, and of steps and gates, in a log.
const (
	runMost      = 24
	subjectLeast = 12
	subjectMost  = 30
)
