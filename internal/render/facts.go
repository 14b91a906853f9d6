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
	Text    string
	Style   string
	Key     bool // important for a person who follows a run
}

// warns returns what a person should look at, quiet what they can do without.
func warns(text string) FactLine { return FactLine{Text: text, Style: console.Yellow, Key: true} }
func quiet(text string) FactLine { return FactLine{Text: text, Style: console.Dim} }

// Bookkeeping reports whether a person who reads the log can do without the line: it is not
// important and warns of nothing.
func (s FactLine) Bookkeeping() bool { return !s.Key && s.Style != console.Yellow }

// Fact returns a fact in words, with foreign texts cleaned.
func Fact(raw json.RawMessage) FactLine {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return FactLine{Text: text.Line(string(raw)), Style: console.Yellow}
	}
	out := quiet(f.FactKind())
	for _, words := range []func(engine.Fact) FactLine{sayRun, sayRepo, sayTrigger} { // each knows some kinds
		if s := words(f); s.Text != "" {
			out = s
			out.Subject = cmp.Or(s.Gate, s.Step)
		}
	}
	for _, words := range []func(engine.Fact) FactLine{sayStep, sayProcess, sayGate, sayHuman, sayTasks} {
		if s := words(f); s.Text != "" {
			out = s.at(raw)
		}
	}
	out.Text = text.Line(text.Brief(out.Text))
	return out
}

// at adds what a fact is about: a step or a gate, with the attempt or the round, or a launch.
func (s FactLine) at(fact json.RawMessage) FactLine {
	var at struct {
		Step, Gate, Key string
		N               int
	}
	_ = json.Unmarshal(fact, &at) // it was decoded before
	s.Step, s.Gate = at.Step, at.Gate
	_, launch, _ := strings.Cut(at.Key, "/")
	switch {
	case s.Subject != "":
	case at.Gate != "" && at.N > 0:
		s.Subject = Round(at.Gate, at.N)
	case at.Step != "" && at.N > 0:
		s.Subject = Attempt(at.Step, at.N)
	default:
		s.Subject = cmp.Or(at.Gate, at.Step, launch, at.Key)
	}
	return s
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
		return quiet("run began")
	case engine.RunPaused:
		return warns(PausedWords(f))
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
		return warns(Because("a budget is nearly used up", f.Text))
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
		return FactLine{Text: "its needs are met: " + strings.Join(f.Pins, ", ")}
	case engine.StepStarted:
		return quiet("is due" + inTree(f.Worktree))
	case engine.StepSkipped:
		return FactLine{Subject: f.Step, Text: "skipped: `when` is false: " + f.When, Key: true}
	case engine.StepLaunched:
		s := FactLine{Text: "launched, until " + Clock(f.Deadline) + " at the latest", Style: console.Blue, Key: true}
		if f.Person {
			s.Text, s.Style, s.Key = fmt.Sprintf("launch %d is the person's", f.K), console.Dim, false
		} else if f.Offered {
			s.Text = "on offer: `sluice next` shows it"
		} else if f.K > 1 {
			s.Text = fmt.Sprintf("launched again (%d)", f.K)
		}
		return s
	case engine.StepClaimed:
		return FactLine{Text: "taken" + Who(&f.By), Key: true}
	case engine.GraceBegan:
		return FactLine{Text: "ended without its signal; it may still come" + until(f.Until), Style: console.Yellow}
	case engine.StepSignalled:
		return saySignal(f)
	case engine.StepHeld:
		return warns("taken over" + Who(&f.By))
	case engine.StepHandedBack:
		s := FactLine{Text: "handed back" + Who(&f.By), Style: console.Bold, Key: true}
		if f.Done {
			s.Text = "handed back as done" + Who(&f.By)
		}
		return s
	case engine.StepRelaunched:
		return sayRelaunched(f)
	case engine.WorkLost:
		return warns(Because("to be launched again", f.Why) + notBefore(f.NotBefore))
	case engine.Checked:
		return sayCheck(f)
	case engine.StepPassed:
		return FactLine{Text: "passed → " + strings.Join(f.To, ", "), Style: console.Green, Key: true}
	case engine.StepRouted:
		return FactLine{Text: "sent on → " + f.To, Key: true}
	case engine.StepSuperseded:
		return quiet(Because("undone", f.Why))
	case engine.WorkSent:
		return FactLine{Text: "the work was sent here from " + f.From, Key: true}
	case engine.WorkUnsent:
		return quiet("the transfer of work to this step was undone")
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
	s := FactLine{Text: f.Status, Key: true}
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
		return quiet("its agent has ended; it is launched again when it is handed back")
	case engine.ClassInfrastructure: // which counts as a restart
		again += " (" + f.Class + ")"
	}
	return warns(Because(again, f.Why) + notBefore(f.NotBefore))
}

func sayCheck(f engine.Checked) FactLine {
	const hold = "outputs and criterion hold"
	switch {
	case f.Broken != "":
		return warns("could not be checked: " + f.Broken)
	case !f.OK:
		return FactLine{Text: Because("does not hold", f.Why), Style: console.Red, Key: true}
	case len(f.Protected) > 0:
		return warns(hold + ", but it changed protected files: " + strings.Join(f.Protected, ", "))
	case f.Unshipped > 0:
		return FactLine{Text: hold + ", judged " + text.Unshipped(f.Unshipped), Style: console.Yellow}
	}
	return FactLine{Text: hold, Style: console.Green}
}

func sayProcess(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.StopOrdered:
		return warns(Because("is being stopped", f.Why))
	case engine.ProcessGone:
		return quiet("process gone: " + exitWords(f.Exit))
	case engine.UsageCounted:
		return quiet("has used " + UsageWords(f.Usage) + " so far")
	case engine.CheckStarted:
		return quiet("outputs and criterion are being checked")
	case engine.HookStarted:
		return FactLine{Subject: f.Step, Text: "hook runs", Style: console.Dim}
	case engine.ClockHeld:
		return warns("waits until another agent has ended (max_agents); its time-out has not begun")
	case engine.ClockBegun:
		return quiet("its turn has come; time-out at " + Clock(f.Deadline))
	case engine.ClockShifted:
		return FactLine{Style: console.Yellow,
			Text: "another machine decides, by a clock that differs by " + f.By.String() + ": all times of the run moved"}
	case engine.TimeLost:
		return quiet("sluice was away for " + text.Span(time.Duration(f.By).Round(time.Second)) +
			"; no limit counts that time")
	case engine.DeadlineMoved:
		return FactLine{Subject: cmp.Or(f.Gate, f.Step), Text: Because("deadline moved to "+Clock(f.To), f.Why),
			Style: console.Yellow}
	}
	return FactLine{}
}

func exitWords(e engine.Exit) string {
	switch {
	case e.NotStarted != "":
		return "it could not start: " + e.NotStarted
	case e.Refused != "":
		return "it was not started: " + e.Refused
	case e.Lost:
		return cmp.Or(e.Why, "it vanished without a record")
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
		return quiet("settings taken")
	case engine.AdvanceOwed:
		return quiet(fmt.Sprintf("the work of %s will go onto its branch", Attempt(f.Step, f.N)))
	case engine.RewindOwed:
		return quiet(fmt.Sprintf("the work of %s will be taken off its branch", Attempt(f.Step, f.N)))
	case engine.LandingOwed:
		return quiet("its work will be landed")
	case engine.WriteDone:
		return quiet(Because("written: "+f.ID, f.Why))
	case engine.DayBudgetNeared:
		return warns(Because("the day's budget is nearly used up", f.Text))
	case engine.FileTaken:
		if f.Move.Why != "" {
			return warns("file " + f.Move.Name + " rejected: " + f.Move.Why)
		}
		return quiet("file " + f.Move.Name + " taken in")
	case engine.FileGone:
		return quiet("file moved out of the inbox")
	case engine.NoticeOwed:
		return FactLine{Gate: f.Notice.Gate, Text: Because("a notice is due ("+f.Notice.Kind+")", f.Notice.Text),
			Style: console.Dim}
	case engine.NoticeTried:
		return FactLine{Gate: f.Gate, Text: Because("notice sent", strings.Join(f.Results, ", ")), Style: console.Dim}
	case engine.Ignored:
		return warns(Because("ignored: "+asked(f.What)+Who(f.Who), f.Why))
	}
	return FactLine{}
}
