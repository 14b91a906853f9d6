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

// Progress returns how many steps of a run are done, and how many it has.
func Progress(r daemon.RunStatus) (done, all int) {
	for _, s := range r.Steps {
		if s.State == engine.Passed || s.State == engine.Skipped || s.State == engine.Routed {
			done++
		}
	}
	return done, len(r.Steps)
}

// ProgressMark is the short form of Progress: "1/3".
func ProgressMark(r daemon.RunStatus) string {
	done, all := Progress(r)
	return fmt.Sprintf("%d/%d", done, all)
}

func RunTime(c *console.Console, r daemon.RunStatus) string {
	switch {
	case r.Started.IsZero():
		return "not begun"
	case r.Ended.IsZero():
		return "for " + Ago(c.Now().Sub(r.Started))
	}
	return fmt.Sprintf("took %s, %s", Ago(r.Ended.Sub(r.Started)), RunAge(c, r))
}

// RunAge returns for how long a run has been live, or when it ended.
func RunAge(c *console.Console, r daemon.RunStatus) string {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return RunTime(c, r)
	}
	return Ago(c.Now().Sub(r.Ended)) + " ago"
}

// FirstWait returns what a run waits for, the oldest wait first and in these words, such as WaitWords; for an ended run
// why it ended.
func FirstWait(r daemon.RunStatus, now time.Time, words func(daemon.Wait, time.Time) string) string {
	if !r.Live() {
		return text.Line(r.EndWhy)
	}
	if len(r.Waits) == 0 {
		return ""
	}
	s := words(r.Waits[0], now)
	if n := len(r.Waits) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// WaitWords returns what a run waits for and for how long: "waiting 9s: tests for its agent".
func WaitWords(w daemon.Wait, now time.Time) string {
	s := "waiting: " + text.Line(w.Text)
	switch {
	case w.Kind == "paused":
		s = text.Line(w.Text) // says so itself
	case !w.Since.IsZero():
		s = "waiting " + Ago(now.Sub(w.Since)) + ": " + text.Line(w.Text)
	}
	if !w.Until.IsZero() {
		s += " (" + Ago(w.Until.Sub(now)) + " left)"
	}
	return s
}

// RunLines returns a run in lines: its head, each step with its gates, and what it waits for. What
// steps and gates did is cut at the terminal's width, all else is wrapped.
func RunLines(c *console.Console, r daemon.RunStatus, now time.Time) (out []string) {
	width := c.Width()
	add := func(indent int, cells ...console.Cell) {
		out = append(out, c.WrappedLines(width, indent, console.Joined(cells...))...)
	}
	state := RunState(r)
	sign, style := Mark(state)
	head := []console.Cell{console.Styled(sign, style), console.Styled(" "+r.ID, console.Bold)}
	if r.Name != "" && r.Name != r.Workflow {
		head = append(head, console.Styled("  "+text.Line(r.Name), console.Plain))
	}
	if r.Child != nil {
		head = append(head, console.Styled("  for "+text.Line(r.Child.Title()), console.Dim))
	}
	add(0, head...)
	add(2, console.Styled(state, style), console.Styled(" · "+ProgressMark(r)+" steps · "+RunTime(c, r), console.Dim))
	for _, words := range runWarnings(r) {
		add(2, console.Styled(words, console.Yellow))
	}
	if words := Spent(r.Usage, r.Budget); words != "" {
		add(2, console.Styled("used "+words, console.Dim))
	}
	for _, role := range slices.Sorted(maps.Keys(r.RoleBudgets)) {
		words := SpentInAll(r.Roles[role], r.RoleBudgets[role])
		add(2, console.Styled("role "+text.Line(role)+" used "+words, console.Dim))
	}
	for _, n := range r.Near {
		add(2, console.Styled(NearBudget(n), console.Yellow))
	}
	out = append(out, stepLines(c, r, now, width)...)
	out = append(out, UnpassedLines(c, r)...)
	for _, n := range r.Notes {
		head := fmt.Sprintf("note %d ", n.N)
		if n.Step != "" {
			head = fmt.Sprintf("note %d for %s ", n.N, n.Step)
		}
		add(2, console.Styled(head, console.Dim), console.Styled("“"+text.Line(n.Text)+"”", console.Plain))
	}
	for _, w := range r.Waits {
		add(2, console.Styled(WaitWords(w, now), console.Plain))
	}
	if r.EndWhy != "" {
		add(2, console.Styled(text.Line(r.EndWhy), console.Plain))
	}
	return out
}

// runWarnings returns what is unusual about a run.
func runWarnings(r daemon.RunStatus) (out []string) {
	if r.Stubbed {
		out = append(out, StubWords)
	}
	if words := Unheld(r); words != "" {
		out = append(out, words)
	}
	if r.SpecDrift {
		out = append(out, SpecChanged+
			fmt.Sprintf(". To use the new one: `sluice abort %s`, `sluice run %s`", r.ID, text.Line(r.Workflow)))
	}
	return out
}

// stepLines returns the steps of a run as a table, and what there is to say of each below it.
func stepLines(c *console.Console, r daemon.RunStatus, now time.Time, width int) (out []string) {
	t := stepTable()
	var below [][]string // of each row
	for _, s := range r.Steps {
		if s.State == "waiting" && !r.Live() { // for nothing any more
			s.State = "not begun"
		}
		t.Row(stepCells(s, now)...)
		var more []string
		if s.Failure != "" && s.State != engine.Passed {
			more = c.WrappedLines(width, 6, console.Styled(text.Line(text.Brief(s.Failure)), console.Red))
		}
		if words := PassedWithout(s); words != "" {
			words = fmt.Sprintf("%s: sluice attempt diff %s %s.%d", words, r.ID, s.ID, s.Attempt)
			more = c.WrappedLines(width, 6, console.Styled(words, console.Yellow))
		}
		below = append(below, append(more, listLines(c, s.List, width)...))
		for _, g := range s.Gates {
			if !g.Listed() {
				continue
			}
			t.Row(gateCells(g, now)...)
			more = nil
			// Why it asks a person has the words of a failure at its end.
			if g.Feedback != "" && g.State != engine.Approved && !strings.HasSuffix(g.Why, g.Feedback) {
				more = c.WrappedLines(width, 8, console.Styled(Quoted(text.Brief(g.Feedback)), console.Yellow))
			}
			below = append(below, more)
		}
	}
	for i, lines := range c.TableRows(t, width) {
		out = append(append(out, lines...), below[i]...)
	}
	return out
}

// PassedWithout says of a passed step that the run went on without its work; "" of others.
func PassedWithout(s daemon.StepStatus) string {
	if s.Untaken && s.State == engine.Passed {
		return "passed without its work, which is in no commit"
	}
	return ""
}

// UnpassedLines returns the newest work that continued in a run without a pass.
func UnpassedLines(c *console.Console, r daemon.RunStatus) (out []string) {
	for _, words := range WentOn(r) {
		out = append(out, c.WrappedLines(c.Width(), 2, console.Styled(words, console.Yellow))...)
	}
	return out
}

// WentOn says what continued in a run without a pass.
func WentOn(r daemon.RunStatus) (out []string) {
	shown := r.Unpassed[max(len(r.Unpassed)-UnpassedShown, 0):]
	if more := r.More + len(r.Unpassed) - len(shown); more > 0 {
		out = append(out, text.GoneOnCount(more)+" earlier")
	}
	for _, u := range shown {
		out = append(out, text.Line(unpassedWords(u)))
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
	return Unpassed{Where: where, Outcome: outcome, Failures: u.Failures, Route: u.Route, Times: u.Times,
		To: u.To}.String() + by
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

// NoRun says that a repo has no run, and how to start one.
const NoRun = "no run yet: `sluice run WORKFLOW` starts one"

// Stall says why nothing is started or decided in a repo now; "" = its journal can be written.
func Stall(st daemon.Status) string {
	if st.Stalled == "" {
		return ""
	}
	return "the journal cannot be written, so nothing is started or decided: " + text.Message(st.Stalled)
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
