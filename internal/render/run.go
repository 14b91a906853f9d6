package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// UnpassedShown is how many unpassed rounds, the newest, the audit names of a workflow and a status
// of a run.
const UnpassedShown = 20

// Progress returns how many steps of a run are done.
func Progress(r daemon.RunStatus) string {
	done := 0
	for _, s := range r.Steps {
		if s.State == engine.Passed || s.State == engine.Skipped || s.State == engine.Routed {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(r.Steps))
}

func RunTime(c *console.Console, r daemon.RunStatus) string {
	switch {
	case r.Started.IsZero():
		return "not begun"
	case r.Ended.IsZero():
		return "for " + Ago(c.Now().Sub(r.Started))
	}
	return fmt.Sprintf("took %s, %s ago", Ago(r.Ended.Sub(r.Started)), Ago(c.Now().Sub(r.Ended)))
}

// FirstWait returns what a run waits for, the oldest wait first; for an ended run why it ended.
func FirstWait(r daemon.RunStatus, now time.Time) string {
	if !r.Live() {
		return text.Line(r.EndWhy)
	}
	if len(r.Waits) == 0 {
		return ""
	}
	s := WaitWords(r.Waits[0], now)
	if n := len(r.Waits) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// WaitWords returns what a run waits for and since when.
func WaitWords(w daemon.Wait, now time.Time) string {
	s := text.Line(w.Text)
	if !w.Since.IsZero() {
		s = "since " + Ago(now.Sub(w.Since)) + " " + s
	}
	if !w.Until.IsZero() {
		s += " (" + Ago(w.Until.Sub(now)) + " left)"
	}
	return s
}

// RunLines returns a run in lines: its head, each step with its gates, and what it waits for.
func RunLines(c *console.Console, r daemon.RunStatus, now time.Time) []string {
	state := RunState(r)
	sign, style := Mark(state)
	head := fmt.Sprintf("%s %s", c.Paint(style, sign), c.Paint(console.Bold, r.ID))
	if r.Name != "" && r.Name != r.Workflow {
		head += "  " + text.Line(r.Name)
	}
	if r.Child != nil {
		head += "  " + c.Paint(console.Dim, "for "+text.Line(r.Child.Title()))
	}
	out := []string{head, "  " + c.Paint(style, state) + c.Paint(console.Dim, " · "+Progress(r)+" steps · "+RunTime(c, r))}
	if r.Stubbed {
		out = append(out, "  "+c.Paint(console.Yellow, StubWords))
	}
	if words := Unheld(r); words != "" {
		out = append(out, "  "+c.Paint(console.Yellow, words))
	}
	if r.SpecDrift {
		words := fmt.Sprintf("the spec's file has changed since; this run keeps the old one. To use the new one: "+
			"`sluice abort %s`, `sluice run %s`", r.ID, text.Line(r.Workflow))
		out = append(out, "  "+c.Paint(console.Yellow, words))
	}
	if words := Spent(r.Usage, r.Budget); words != "" {
		out = append(out, "  "+c.Paint(console.Dim, "used "+words))
	}
	for _, role := range slices.Sorted(maps.Keys(r.RoleBudgets)) {
		out = append(out, "  "+c.Paint(console.Dim, "role "+text.Line(role)+" used "+SpentInAll(r.Roles[role], r.RoleBudgets[role])))
	}
	for _, n := range r.Near {
		out = append(out, "  "+c.Paint(console.Yellow, "near its budget: "+text.Line(n)))
	}
	out = append(out, stepLines(c, r, now)...)
	out = append(out, UnpassedLines(c, r)...)
	for _, n := range r.Notes {
		head := fmt.Sprintf("note %d ", n.N)
		if n.Step != "" {
			head = fmt.Sprintf("note %d for %s ", n.N, n.Step)
		}
		out = append(out, "  "+c.Paint(console.Dim, head)+"“"+text.Line(n.Text)+"”")
	}
	for _, w := range r.Waits {
		out = append(out, "  "+c.Paint(console.Dim, "waits ")+WaitWords(w, now))
	}
	if r.EndWhy != "" {
		out = append(out, "  "+text.Line(r.EndWhy))
	}
	return out
}

func stepLines(c *console.Console, r daemon.RunStatus, now time.Time) (out []string) {
	width := NameWidth(r)
	for _, s := range r.Steps {
		if s.State == "waiting" && !r.Live() { // for nothing any more
			s.State = "not begun"
		}
		out = append(out, StepLine(c, s, width, now))
		if s.Failure != "" && s.State != engine.Passed {
			out = append(out, "      "+c.Paint(console.Red, text.Line(s.Failure)))
		}
		out = append(out, listLines(c, s.List)...)
		for _, g := range s.Gates {
			if g.Implicit && g.State != engine.OnHuman {
				continue
			}
			out = append(out, GateLine(c, g, width))
			if g.Feedback != "" && g.State != engine.Approved {
				out = append(out, "        "+c.Paint(console.Yellow, "“"+text.Line(g.Feedback)+"”"))
			}
		}
	}
	return out
}

// UnpassedLines returns the newest work that continued in a run without a pass.
func UnpassedLines(c *console.Console, r daemon.RunStatus) (out []string) {
	shown := r.Unpassed[max(len(r.Unpassed)-UnpassedShown, 0):]
	if more := r.More + len(r.Unpassed) - len(shown); more > 0 {
		out = append(out, "  "+c.Paint(console.Yellow, text.GoneOnCount(more)+" earlier"))
	}
	for _, u := range shown {
		out = append(out, "  "+c.Paint(console.Yellow, text.Line(unpassedWords(u))))
	}
	return out
}

// unpassedWords describes what let work continue that a gate did not pass.
func unpassedWords(u daemon.LetThrough) string {
	where, outcome, by := strings.TrimSpace(u.Run+" "+u.Gate), u.Outcome, ""
	if outcome == engine.OutcomePass {
		outcome = "on_exhausted"
	}
	if u.ByKind == "human" {
		by = ", by " + By(u.ByKind, u.By)
	}
	return Unpassed{Where: where, Outcome: outcome, Failures: u.Failures, Route: u.Route, Times: u.Times, To: u.To}.String() + by
}

// UsageWords returns what was used.
func UsageWords(u engine.Usage) string { return Spent(u, engine.Usage{}) }

// TodayWords returns the usage of the day; "" if there is neither usage nor a limit.
func TodayWords(t daemon.Today) string {
	said := SpentInAll(t.All, t.Budget)
	if said == "" {
		return ""
	}
	said = "today, all repos: " + said
	if here := UsageWords(t.Here.Usage); here != "" && t.Here.Usage != t.All.Usage {
		said += " (this repo: " + here + ")"
	}
	return said
}

// StubWords accompany the state of a run with --stub wherever it is shown.
const StubWords = "stubbed: stubs play its agents, nothing in it is real work"

// StubMark is the short form of StubWords.
func StubMark(stubbed bool) string {
	if stubbed {
		return " (stubbed)"
	}
	return ""
}

// RunState returns a run's phase, or that it is paused.
func RunState(r daemon.RunStatus) string {
	if r.Paused != "" && r.Live() {
		return "paused"
	}
	return r.Phase
}

// Unheld returns the words and the reason for a run that no sandbox holds; "" for a held one.
func Unheld(r daemon.RunStatus) string {
	if r.Trust != engine.TrustFile {
		return ""
	}
	return Because(text.Unheld, text.Message(r.Exposed))
}

// UnheldMark is the short form of Unheld.
func UnheldMark(trust string) string {
	if trust != engine.TrustFile {
		return ""
	}
	return " · " + text.Unheld
}
