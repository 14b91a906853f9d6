package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
)

// Widths of columns, in terminal cells.
const (
	idMost    = 24
	idLeast   = 14
	titleMost = 30
	stateWide = 10
	nameLeast = 16
	roomy     = 100 // from here on the names of steps and gates make a column
	narrow    = 60  // below it, waiting gates are shown by their ids
)

type span struct{ style, text string }

type line []span

// reversed marks the row under the cursor, beside its sign.
const reversed = "7"

// draw returns a line of at most width cells.
func (m *drawing) draw(l line, width int, selected bool) string {
	var b strings.Builder
	left := width
	for i, s := range l {
		text := s.text
		if w := console.Width(text); w > left || w == left && more(l[i+1:]) {
			text = ansi.Truncate(text+" …", left, "…")
		}
		left -= console.Width(text)
		style := s.style
		if selected {
			style = reversed
		}
		b.WriteString(m.paint(style, text))
		if left <= 0 {
			break
		}
	}
	if selected && left > 0 {
		b.WriteString(m.paint(reversed, strings.Repeat(" ", left)))
	}
	return b.String()
}

// full returns a line of the whole screen.
func (m *drawing) full(l line) string { return m.draw(l, m.width, false) }

func more(l line) bool {
	return slices.ContainsFunc(l, func(s span) bool { return s.text != "" })
}

// paint sets a style.
func (m *drawing) paint(style, s string) string {
	if s == "" || style == console.Plain {
		return s
	}
	return m.legible("\x1b["+style+"m") + s + "\x1b[0m"
}

// legible replaces yellow and cyan, which can hardly be read on a light background.
func (m *drawing) legible(painted string) string {
	if !m.light || !strings.Contains(painted, "\x1b[") {
		return painted
	}
	return strings.NewReplacer("\x1b[33m", "\x1b[35m", "\x1b[1;33m", "\x1b[1;35m", "\x1b[36m", "\x1b[34m").Replace(painted)
}

func (m *drawing) rowLine(r *row, at bool) line {
	cursor := span{console.Plain, "  "}
	if at {
		cursor.text = "› "
	}
	switch r.kind {
	case headRow:
		return line{{console.Bold, r.text}, {console.Dim, repoWords(r.repo)}}
	case emptyRow:
		return line{{console.Dim, "  " + r.text}}
	case waitRow:
		return append(line{cursor}, m.waitLine(r)...)
	case runRow:
		return append(line{cursor}, m.runLine(r.run)...)
	case stepRow:
		return append(line{cursor, {console.Plain, "  "}}, m.stepLine(r)...)
	}
	return append(line{cursor, {console.Plain, "    "}}, m.gateLine(r)...)
}

func repoWords(r *repo) string {
	if r == nil {
		return ""
	}
	s := ""
	if r.lost != "" || r.known && !r.served {
		s += " · not served"
	}
	if r.status.Trust != "" {
		s += " · trust " + r.status.Trust
	}
	return s + " · " + text.Line(r.root)
}

func sep(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), " · ")
}

// waitLine returns a row for what waits for a person: what, where, since when or how long, and why.
func (m *drawing) waitLine(r *row) line {
	state := r.wait.Kind
	what, why := r.what(), ""
	var parts []string
	if r.gate != nil {
		state, what = r.gate.State, text.Title(r.gate.ID, r.gate.Name)
		if m.width < narrow {
			what = r.gate.ID
		}
		parts = append(parts, score(r.gate), counts(r.gate))
		why = render.WhyElse(render.Cause(r.gate.Why))
	} else if r.step != nil {
		what = text.Title(r.step.ID, r.step.Name)
	}
	sign, style := render.Mark(state)
	says := ""
	switch r.wait.Kind {
	case "human":
		says = "asks you"
	case "window":
		says = "goes on in " + render.Ago(r.wait.Until.Sub(m.now())) + " unless you veto"
	case "offer":
		sign, style, says = "?", console.Yellow, "is on offer: `sluice next`"
	case "paused":
		what, says = "", "is "+render.Paused(r.run.Paused, nil)
	}
	if r.gate != nil && counts(r.gate) == "" { // beside "failed 1/3" it reads as the reason of it
		why = sep(why, render.Quoted(r.step.Summary))
	}
	since := ""
	if !r.wait.Since.IsZero() && r.wait.Kind != "window" {
		since = render.Ago(m.now().Sub(r.wait.Since))
	}
	if len(m.repos) > 1 {
		parts = append(parts, text.Line(r.repo.name))
	}
	if c := r.run.Child; c != nil {
		parts = append(parts, text.Line(c.Title()))
	}
	if r.run.Stubbed {
		parts = append(parts, "stubbed")
	}
	if r.run.Trust == engine.TrustFile && (m.one == nil || m.one.id != r.run.ID) { // its own screen says so above
		parts = append(parts, text.Unheld)
	}
	l := line{{style, sign + " "}}
	if what != "" {
		l = append(l, span{console.Bold, console.ClipMiddle(what, titleMost) + " "})
	}
	if m.one == nil || m.one.id != r.run.ID {
		of := ""
		if what != "" {
			of = "of "
		}
		l = append(l, span{console.Plain, of + console.ClipMiddle(text.Line(r.run.ID), idMost) + " "})
	}
	return append(l, span{style, says}, span{console.Dim, gap(sep(append([]string{since}, append(parts, why)...)...))})
}

func score(g *daemon.GateStatus) string {
	if g.Score == nil {
		return ""
	}
	return fmt.Sprintf("score %g", *g.Score)
}

func counts(g *daemon.GateStatus) string { return sep(render.Counts(g.Count, g.Routes, g.Max)...) }

func (m *drawing) runLine(r *daemon.RunStatus) line {
	state := render.RunState(*r)
	sign, style := render.Mark(state)
	took := ""
	switch {
	case r.Started.IsZero():
	case r.Ended.IsZero():
		took = render.Ago(m.now().Sub(r.Started))
	default:
		took = render.Ago(m.now().Sub(r.Ended)) + " ago"
	}
	rest := text.Line(r.EndWhy)
	if r.Live() {
		rest = ""
		if len(r.Near) > 0 {
			rest = render.NearBudget(strings.Join(r.Near, ", "))
		}
		if len(r.Waits) > 0 {
			rest = sep(rest, text.Line(r.Waits[0].Text))
		}
	}
	if r.Stubbed {
		rest = sep("stubbed", rest)
	}
	if r.Trust == engine.TrustFile {
		rest = sep(text.Unheld, rest)
	}
	rest = sep(text.Line(r.Child.Title()), rest)
	unpassed := render.NotPassed(r.More + len(r.Unpassed))
	if unpassed != "" && rest != "" {
		unpassed += " · "
	}
	id := console.ClipMiddle(text.Line(r.ID), idMost)
	return line{{style, sign + " "}, {console.Bold, console.Pad(id, idLeast) + " "},
		{style, console.Pad(state, stateWide)},
		{console.Plain, console.Pad(render.ProgressMark(*r), 6)}, {console.Dim, console.Pad(took, 9) + " "},
		{console.Plain, spent(r)}, {console.Yellow, unpassed}, {console.Dim, rest}}
}

func spent(r *daemon.RunStatus) string {
	if s := render.SpentShort(r.Usage, r.Budget); s != "" {
		return s + "  "
	}
	return ""
}

// nameWide is the width of the names of a run's steps; those of its gates are indented by 2. Where
// there is room, all names fit, so that the states beside them are below one another.
func nameWide(r *daemon.RunStatus, width int) int {
	wide := nameLeast
	if width < roomy {
		return wide
	}
	for _, s := range r.Steps {
		wide = max(wide, console.Width(text.Title(s.ID, s.Name)))
		for _, g := range s.Gates {
			if g.Listed() {
				wide = max(wide, console.Width(text.Title(g.ID, g.Name))+2)
			}
		}
	}
	return min(wide, titleMost+2)
}

func (m *drawing) stepLine(r *row) line {
	s := r.step
	stands := render.StepStands(*s, m.now())
	if s.State == engine.Running && m.now().Second()%2 == 1 {
		stands.Sign = "▹" // it moves while an agent works
	}
	l := standingLine(stands, text.Title(s.ID, s.Name), nameWide(r.run, m.width))
	if s.List != nil && s.List.Total > 0 {
		l = append(l, span{console.Blue, gap(tally(s.List.Tally))})
	}
	said, tone := render.Quoted(s.Summary), console.Plain
	if last := m.words[r.key()]; last != "" && r.talks() != "" {
		said = render.Quoted(last)
	} else if s.Failure != "" && s.State != engine.Passed {
		said, tone = text.Line(text.Brief(s.Failure)), console.Red
	} else if words := render.PassedWithout(*s); words != "" {
		said, tone = words, console.Yellow
	}
	for _, part := range []span{{tone, said}, {console.Dim, text.Line(s.Role)}} {
		switch {
		case part.text == "":
			continue
		case len(stands.Parts) > 0 || len(l) > 4:
			l = append(l, span{console.Dim, " · "})
		}
		l = append(l, part)
	}
	return l
}

// barWide is the width of a list's bar.
const barWide = 8

// tally returns the progress of a list of tasks.
func tally(t engine.Tally) string {
	done := barWide * t.Done / t.Total
	return strings.Repeat("▰", done) + strings.Repeat("▱", barWide-done) +
		fmt.Sprintf(" %d/%d tasks", t.Done, t.Total) + render.NotDone(t)
}

func (m *drawing) gateLine(r *row) line {
	g := r.gate
	stands := render.GateStands(*g, m.now())
	stands.State = cmp.Or(stands.State, "-")
	if g.State == engine.OnHuman {
		stands.State = "asks you"
		stands.Parts = append(stands.Parts, render.WhyElse(render.Cause(g.Why)))
	}
	said := ""
	if g.Feedback != "" && g.State != engine.Approved {
		said = render.Quoted(text.Brief(g.Feedback))
	}
	if last := m.words[r.key()]; last != "" && r.talks() != "" {
		said = render.Quoted(last)
	}
	l := standingLine(stands, text.Title(g.ID, g.Name), nameWide(r.run, m.width)-2)
	return append(l, span{console.Plain, gap(said)})
}

// standingLine returns how a step or a gate stands, its name so wide.
func standingLine(s render.Standing, name string, wide int) line {
	return line{{s.Style, s.Sign + " "}, {console.Plain, console.Pad(console.ClipMiddle(name, titleMost), wide) + " "},
		{s.Style, console.Pad(s.State, stateWide)}, {console.Dim, sep(s.Parts...)}}
}

func gap(s string) string {
	if s == "" {
		return ""
	}
	return " · " + s
}
