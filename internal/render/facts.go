package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// FactLine is a fact in words.
type FactLine struct {
	Subject string // XG-1-2 #1, or "" for the run itself
	Step    string // the step or
	Gate    string // the gate it is about
	n       int    // the attempt of the step, or the round of the gate; 0 = none
	Text    string
	Style   string
	Key     bool // important for a person who follows a run
}

// Bookkeeping reports whether a person who reads the log can do without the line: it is not
// important and warns of nothing.
func (s FactLine) Bookkeeping() bool { return !s.Key && s.Style != console.Yellow }

// Fact returns a fact in words, with foreign texts cleaned.
func Fact(raw json.RawMessage) FactLine {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return FactLine{Text: text.Line(string(raw)), Style: console.Yellow}
	}
	for _, words := range []func(engine.Fact) FactLine{sayRun, sayStep, sayProcess, sayGate, sayHuman, sayRepo,
		sayTasks, sayTrigger} { // each knows some kinds, and says nothing of others
		if s := words(f); s.Text != "" {
			s.Text = text.Line(s.Text)
			s.Subject = cmp.Or(s.Subject, s.subject())
			return s
		}
	}
	return FactLine{Text: f.FactKind(), Style: console.Dim}
}

// subject names what a line is about, unless its Subject does.
func (s FactLine) subject() string {
	switch {
	case s.Gate != "" && s.n > 0:
		return Round(s.Gate, s.n)
	case s.n > 0:
		return Attempt(s.Step, s.n)
	}
	return cmp.Or(s.Gate, s.Step)
}

func Attempt(step string, n int) string { return fmt.Sprintf("%s.%d", step, n) }

func Round(gate string, n int) string { return fmt.Sprintf("%s #%d", gate, n) }

// Because appends a reason, if any.
func Because(s, why string) string {
	if why == "" {
		return s
	}
	return s + ": " + why
}

func Clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.TimeOnly)
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + Clock(t)
}

func sayRun(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.RunStarted:
		if c := f.Child; c != nil {
			what := "child run of " + c.Step
			if c.Task != "" {
				what = fmt.Sprintf("task %s of %s, try %d", text.Line(c.Task), c.Step, c.Try)
			}
			return FactLine{Text: what, Style: console.Bold, Key: true}
		}
		what := fmt.Sprintf("run of %s asked for%s", f.Workflow, Who(&f.By))
		if f.Fired != nil {
			what += ": " + f.Fired.Trigger + " " + f.Fired.Key
		}
		if len(f.Stubs) > 0 {
			what += "; " + StubWords
		}
		return FactLine{Text: what, Style: console.Bold, Key: true}
	case engine.RunBegan:
		return FactLine{Text: "run began", Style: console.Dim}
	case engine.RunPaused:
		return FactLine{Text: PausedWords(f), Style: console.Yellow, Key: true}
	case engine.RunResumed:
		return FactLine{Text: "resumed" + Who(f.By), Style: console.Bold, Key: true}
	case engine.RunEnded:
		_, style := Mark(f.Phase)
		words := Because("run "+f.Phase+Who(f.By), f.Why)
		if strings.HasPrefix(f.Why, f.Phase+" by ") { // a person's words say so themselves
			words = "run " + f.Why
		} else if f.Cause == engine.CausePerson {
			words = Because("run "+f.Phase, f.Why)
		}
		return FactLine{Text: words, Style: style, Key: true}
	case engine.RunReopened:
		return FactLine{Text: "continued" + Who(f.By), Style: console.Bold, Key: true}
	case engine.NoteTaken:
		return FactLine{Step: f.Step, Text: fmt.Sprintf("note %d%s: %s", f.N, Who(&f.By), f.Text), Style: console.Bold,
			Key: true}
	case engine.BudgetNeared:
		return FactLine{Text: Because("a budget is nearly used up", f.Text), Style: console.Yellow, Key: true}
	case engine.BudgetLifted:
		return FactLine{Text: "the day's budget was changed: waiting launches continue", Style: console.Dim, Key: true}
	case engine.RunForgotten:
		return FactLine{Text: "removed from the list of runs; the journal keeps it", Style: console.Dim, Key: true}
	}
	return FactLine{}
}

func sayStep(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.NeedsMet:
		return FactLine{Step: f.Step, Text: "its needs are met: " + strings.Join(f.Pins, ", ")}
	case engine.StepStarted:
		return FactLine{Step: f.Step, n: f.N, Text: "is due" + inTree(f.Worktree), Style: console.Dim}
	case engine.StepSkipped:
		return FactLine{Step: f.Step, Text: "skipped: `when` is false: " + f.When, Key: true}
	case engine.StepLaunched:
		s := FactLine{Step: f.Step, n: f.N, Text: "launched, until " + Clock(f.Deadline) + " at the latest",
			Style: console.Blue, Key: true}
		if f.Person {
			s.Text, s.Style, s.Key = fmt.Sprintf("launch %d is the person's", f.K), console.Dim, false
		} else if f.Offered {
			s.Text = "on offer: `sluice next` shows it"
		} else if f.K > 1 {
			s.Text = fmt.Sprintf("launched again (%d)", f.K)
		}
		return s
	case engine.StepClaimed:
		return FactLine{Step: f.Step, n: f.N, Text: "taken" + Who(&f.By), Key: true}
	case engine.GraceBegan:
		return FactLine{Step: f.Step, n: f.N, Text: "ended without its signal; it may still come" + until(f.Until),
			Style: console.Yellow}
	case engine.StepSignalled:
		return saySignal(f)
	case engine.StepHeld:
		return FactLine{Step: f.Step, n: f.N, Text: "taken over" + Who(&f.By), Style: console.Yellow, Key: true}
	case engine.StepHandedBack:
		s := FactLine{Step: f.Step, n: f.N, Text: "handed back" + Who(&f.By), Style: console.Bold, Key: true}
		if f.Done {
			s.Text = "handed back as done" + Who(&f.By)
		}
		return s
	case engine.StepRelaunched:
		return sayRelaunched(f)
	case engine.WorkLost:
		return FactLine{Step: f.Step, n: f.N, Text: Because("to be launched again", f.Why) + notBefore(f.NotBefore),
			Style: console.Yellow, Key: true}
	case engine.Checked:
		return sayCheck(f)
	case engine.StepPassed:
		return FactLine{Step: f.Step, n: f.N, Text: "passed → " + strings.Join(f.To, ", "), Style: console.Green, Key: true}
	case engine.StepRouted:
		return FactLine{Step: f.Step, n: f.N, Text: "sent on → " + f.To, Key: true}
	case engine.StepSuperseded:
		return FactLine{Step: f.Step, n: f.N, Text: Because("undone", f.Why), Style: console.Dim}
	case engine.WorkSent:
		return FactLine{Step: f.Step, Text: "the work was sent here from " + f.From, Key: true}
	case engine.WorkUnsent:
		return FactLine{Step: f.Step, Text: "the transfer of work to this step was undone", Style: console.Dim}
	}
	return FactLine{}
}

func inTree(tree string) string {
	if tree == "" {
		return ""
	}
	return " in " + tree
}

func notBefore(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", not before " + Clock(t)
}

func saySignal(f engine.StepSignalled) FactLine {
	s := FactLine{Step: f.Step, n: f.N, Text: f.Status, Key: true}
	if OwnWord(f.Via, f.Broken) {
		s.Text = "says " + f.Status
		if f.Via != "" {
			s.Text += " (" + f.Via + ")"
		}
	}
	s.Text = Because(s.Text, f.Summary)
	for _, why := range []string{f.Failure, f.Broken, f.Question} {
		if why != f.Summary {
			s.Text = Because(s.Text, why)
		}
	}
	if f.Status != engine.StatusDone {
		s.Style = console.Yellow
	}
	return s
}

func sayRelaunched(f engine.StepRelaunched) FactLine {
	again := "to be launched again"
	switch f.Class {
	case "takeover":
		return FactLine{Step: f.Step, n: f.N, Text: "its agent has ended; it is launched again when it is handed back",
			Style: console.Dim}
	case engine.ClassInfrastructure: // which counts as a restart
		again += " (" + f.Class + ")"
	}
	return FactLine{Step: f.Step, n: f.N, Text: Because(again, f.Why) + notBefore(f.NotBefore), Style: console.Yellow,
		Key: true}
}

func sayCheck(f engine.Checked) FactLine {
	s := FactLine{Step: f.Step, n: f.N, Text: "outputs and criterion hold", Style: console.Green}
	switch {
	case f.Broken != "":
		s.Text, s.Style, s.Key = "could not be checked: "+f.Broken, console.Yellow, true
	case !f.OK:
		s.Text, s.Style, s.Key = Because("does not hold", f.Why), console.Red, true
	case len(f.Protected) > 0:
		s.Text, s.Style, s.Key = "hold, but it changed protected files: "+strings.Join(f.Protected, ", "), console.Yellow,
			true
	case f.Unshipped > 0:
		s.Text, s.Style = "hold, judged "+text.Unshipped(f.Unshipped), console.Yellow
	}
	return s
}

func sayProcess(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.StopOrdered:
		return FactLine{Subject: shortKey(f.Key), Text: Because("is being stopped", f.Why), Style: console.Yellow, Key: true}
	case engine.ProcessGone:
		return FactLine{Subject: shortKey(f.Key), Text: "process gone: " + exitWords(f.Exit), Style: console.Dim}
	case engine.UsageCounted:
		return FactLine{Subject: shortKey(f.Key), Text: "has used " + UsageWords(f.Usage) + " so far", Style: console.Dim}
	case engine.CheckStarted:
		return FactLine{Step: f.Step, n: f.N, Text: "outputs and criterion are being checked", Style: console.Dim}
	case engine.HookStarted:
		return FactLine{Step: f.Step, Text: "hook runs", Style: console.Dim}
	case engine.ClockHeld:
		return FactLine{Subject: shortKey(f.Key),
			Text: "waits until another agent has ended (max_agents); its time-out has not begun", Style: console.Yellow,
			Key: true}
	case engine.ClockBegun:
		return FactLine{Subject: shortKey(f.Key), Text: "its turn has come; time-out at " + Clock(f.Deadline),
			Style: console.Dim}
	case engine.ClockShifted:
		return FactLine{Style: console.Yellow,
			Text: "another machine decides, by a clock that differs by " + f.By.String() + ": all times of the run moved"}
	case engine.DeadlineMoved:
		return FactLine{Step: f.Step, Gate: f.Gate, Text: Because("deadline moved to "+Clock(f.To), f.Why),
			Style: console.Yellow}
	}
	return FactLine{}
}

func shortKey(key string) string {
	if _, after, ok := strings.Cut(key, "/"); ok {
		return after
	}
	return key
}

func exitWords(e engine.Exit) string {
	switch {
	case e.NotStarted != "":
		return "it could not start: " + e.NotStarted
	case e.Refused != "":
		return "it was not started: " + e.Refused
	case e.Lost:
		return "it vanished without a record"
	case e.Idle:
		return "ended after too long without output"
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return Because(fmt.Sprintf("exit code %d", e.Code), e.Why)
}

// sayRepo returns the words for facts of no step and no gate.
func sayRepo(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.SettingsTaken:
		return FactLine{Text: "settings taken", Style: console.Dim}
	case engine.AdvanceOwed:
		return FactLine{Text: fmt.Sprintf("the work of %s will go onto its branch", Attempt(f.Step, f.N)), Style: console.Dim}
	case engine.RewindOwed:
		return FactLine{Text: fmt.Sprintf("the work of %s will be taken off its branch", Attempt(f.Step, f.N)),
			Style: console.Dim}
	case engine.LandingOwed:
		return FactLine{Text: "its work will be landed", Style: console.Dim}
	case engine.WriteDone:
		return FactLine{Text: Because("written: "+f.ID, f.Why), Style: console.Dim}
	case engine.DayBudgetNeared:
		return FactLine{Text: Because("the day's budget is nearly used up", f.Text), Style: console.Yellow, Key: true}
	case engine.FileTaken:
		if f.Move.Why != "" {
			return FactLine{Text: "file " + f.Move.Name + " rejected: " + f.Move.Why, Style: console.Yellow, Key: true}
		}
		return FactLine{Text: "file " + f.Move.Name + " taken in", Style: console.Dim}
	case engine.FileGone:
		return FactLine{Text: "file moved out of the inbox", Style: console.Dim}
	case engine.NoticeOwed:
		return FactLine{Gate: f.Notice.Gate, Text: Because("a notice is due ("+f.Notice.Kind+")", f.Notice.Text),
			Style: console.Dim}
	case engine.NoticeTried:
		return FactLine{Gate: f.Gate, Text: Because("notice sent", strings.Join(f.Results, ", ")), Style: console.Dim}
	case engine.Ignored:
		return FactLine{Text: Because("ignored: "+asked(f.What)+Who(f.Who), f.Why), Style: console.Yellow, Key: true}
	}
	return FactLine{}
}
