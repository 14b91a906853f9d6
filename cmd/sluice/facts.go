package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/render"
	"sluice/internal/text"
)

// said is a fact in words.
type said struct {
	subject string // XG-1-2 #1, or "" for the run itself
	step    string // the step or
	gate    string // the gate it is about
	text    string
	style   string
	key     bool // one that a person who follows a run wants to see
}

// say puts a fact into words. Foreign texts in it are cleaned.
func say(raw json.RawMessage) said {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return said{text: clean(string(raw)), style: console.Dim}
	}
	for _, words := range []func(engine.Fact) (said, bool){sayRun, sayStep, sayProcess, sayGate, sayHuman, sayRepo, sayTasks} {
		if s, ok := words(f); ok {
			s.text = clean(s.text)
			if s.subject == "" && s.step != "" {
				s.subject = s.step
			}
			return s
		}
	}
	return said{text: f.FactKind(), style: console.Dim}
}

func attempt(step string, n int) string { return fmt.Sprintf("%s.%d", step, n) }
func round(gate string, n int) string   { return fmt.Sprintf("%s #%d", gate, n) }

// because adds a reason, where there is one.
func because(s, why string) string {
	if why == "" {
		return s
	}
	return s + ": " + why
}

// who names an actor.
func who(by *engine.Actor) string { return render.Who(by) }

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.TimeOnly)
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + clock(t)
}

// sayRun is of what happens to a run as a whole.
func sayRun(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.RunStarted:
		if c := f.Child; c != nil {
			text := "child run of " + c.Step
			if c.Task != "" {
				text = fmt.Sprintf("task %s of %s, try %d", clean(c.Task), c.Step, c.Try)
			}
			return said{text: text, style: console.Bold, key: true}, true
		}
		text := fmt.Sprintf("run of %s asked for%s", f.Workflow, who(&f.By))
		if len(f.Stubs) > 0 {
			text += "; " + stubWords
		}
		return said{text: text, style: console.Bold, key: true}, true
	case engine.RunBegan:
		return said{text: "run began", style: console.Dim}, true
	case engine.RunPaused:
		return said{text: because("paused ("+f.Why+")"+who(f.By), f.Text), style: console.Yellow, key: true}, true
	case engine.RunResumed:
		return said{text: "resumed" + who(f.By), style: console.Bold, key: true}, true
	case engine.RunEnded:
		_, style := mark(f.Phase)
		text := "run " + f.Phase
		if !strings.HasPrefix(f.Why, f.Phase+" by ") {
			text += who(f.By)
		}
		return said{text: because(text, f.Why), style: style, key: true}, true
	case engine.RunReopened:
		return said{text: "taken up again" + who(f.By), style: console.Bold, key: true}, true
	case engine.NoteTaken:
		return said{step: f.Step, text: fmt.Sprintf("note %d%s: %s", f.N, who(&f.By), f.Text), style: console.Bold, key: true}, true
	case engine.BudgetNeared:
		return said{text: because("a budget comes to its end", f.Text), style: console.Yellow, key: true}, true
	case engine.BudgetLifted:
		return said{text: "the day's budget was changed: what waits for it goes on", style: console.Dim}, true
	case engine.RunForgotten:
		return said{text: "left the list of runs; the journal keeps it", style: console.Dim}, true
	}
	return said{}, false
}

// sayStep is of what happens to a step's attempt.
func sayStep(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.NeedsMet:
		return said{step: f.Step, text: "what it needs is there: " + strings.Join(f.Pins, ", ")}, true
	case engine.StepStarted:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "is due" + inTree(f.Worktree), style: console.Dim}, true
	case engine.StepSkipped:
		return said{step: f.Step, text: "skipped: `when` is false: " + f.When, key: true}, true
	case engine.StepLaunched:
		s := said{step: f.Step, subject: attempt(f.Step, f.N), text: "launched, until " + clock(f.Deadline) + " at the latest", style: console.Blue, key: true}
		if f.Person {
			s.text, s.style, s.key = fmt.Sprintf("launch %d is the person's own", f.K), console.Dim, false
		} else if f.Offered {
			s.text = "on offer: `sluice next` shows it"
		} else if f.K > 1 {
			s.text = fmt.Sprintf("launched again (%d)", f.K)
		}
		return s, true
	case engine.StepClaimed:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "taken" + who(&f.By), key: true}, true
	case engine.GraceBegan:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "ended without its signal; it may still come" + until(f.Until), style: console.Yellow}, true
	case engine.StepSignalled:
		return saySignal(f), true
	case engine.StepHeld:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "taken over" + who(&f.By), style: console.Yellow, key: true}, true
	case engine.StepHandedBack:
		s := said{step: f.Step, subject: attempt(f.Step, f.N), text: "handed back" + who(&f.By), style: console.Bold, key: true}
		if f.Done {
			s.text = "handed back as done" + who(&f.By)
		}
		return s, true
	case engine.StepRelaunched:
		if f.Class == "takeover" {
			return said{step: f.Step, subject: attempt(f.Step, f.N), text: "its agent has ended; it is launched again when it is handed back", style: console.Dim}, true
		}
		again := "to be launched again"
		if f.Class == engine.ClassInfrastructure { // which restarts counts
			again += " (" + f.Class + ")"
		}
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: because(again, f.Why) + notBefore(f.NotBefore), style: console.Yellow, key: true}, true
	case engine.Checked:
		return sayCheck(f), true
	case engine.StepPassed:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "passed → " + strings.Join(f.To, ", "), style: console.Green, key: true}, true
	case engine.StepRouted:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "sent on → " + f.To, key: true}, true
	case engine.StepSuperseded:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: because("undone", f.Why), style: console.Dim}, true
	case engine.WorkSent:
		return said{step: f.Step, text: "the work was sent here from " + f.From, key: true}, true
	case engine.WorkUnsent:
		return said{step: f.Step, text: "what sent the work here was undone", style: console.Dim}, true
	}
	return said{}, false
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
	return ", not before " + clock(t)
}

func saySignal(f engine.StepSignalled) said {
	s := said{step: f.Step, subject: attempt(f.Step, f.N), text: "says " + f.Status, key: true}
	if f.Via != "" {
		s.text += " (" + f.Via + ")"
	}
	s.text = because(s.text, f.Summary)
	for _, why := range []string{f.Failure, f.Broken, f.Question} {
		s.text = because(s.text, why)
	}
	if f.Status != engine.StatusDone {
		s.style = console.Yellow
	}
	return s
}

func sayCheck(f engine.Checked) said {
	s := said{step: f.Step, subject: attempt(f.Step, f.N), text: "outputs and criterion hold", style: console.Green}
	switch {
	case f.Broken != "":
		s.text, s.style, s.key = "could not be checked: "+f.Broken, console.Yellow, true
	case !f.OK:
		s.text, s.style, s.key = because("does not hold", f.Why), console.Red, true
	case len(f.Protected) > 0:
		s.text, s.style, s.key = "hold, but it changed what is protected: "+strings.Join(f.Protected, ", "), console.Yellow, true
	case f.Unshipped > 0:
		s.text, s.style = "hold, judged "+text.Unshipped(f.Unshipped), console.Yellow
	}
	return s
}

// sayProcess is of processes.
func sayProcess(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.StopOrdered:
		return said{subject: shortKey(f.Key), text: because("is being ended", f.Why), style: console.Yellow, key: true}, true
	case engine.ProcessGone:
		return said{subject: shortKey(f.Key), text: "process gone: " + exitWords(f.Exit), style: console.Dim}, true
	case engine.UsageCounted:
		return said{subject: shortKey(f.Key), text: "has used " + usageWords(f.Usage) + " so far", style: console.Dim}, true
	case engine.CheckStarted:
		return said{step: f.Step, subject: attempt(f.Step, f.N), text: "outputs and criterion are being checked", style: console.Dim}, true
	case engine.HookStarted:
		return said{step: f.Step, text: "hook runs", style: console.Dim}, true
	case engine.ClockHeld:
		return said{subject: shortKey(f.Key), text: "waits until another agent has ended (max_agents); its time-out has not begun", style: console.Yellow, key: true}, true
	case engine.ClockBegun:
		return said{subject: shortKey(f.Key), text: "its turn has come; time-out at " + clock(f.Deadline), style: console.Dim}, true
	case engine.DeadlineMoved:
		return said{step: f.Step, gate: f.Gate, subject: f.Step + f.Gate, text: because("deadline moved to "+clock(f.To), f.Why), style: console.Yellow}, true
	}
	return said{}, false
}

// shortKey is a launch's key without its run.
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
		return "ended, it said nothing for too long"
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return because(fmt.Sprintf("exit code %d", e.Code), e.Why)
}

// sayGate is of what happens at a gate without a person.
func sayGate(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.RoundOpened:
		return said{gate: f.Gate, step: f.Step, subject: round(f.Gate, f.N), text: fmt.Sprintf("opened over %s (%s)", attempt(f.Step, f.Attempt), f.Level), style: console.Dim}, true
	case engine.ReviewStarted:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "reviewer launched", style: console.Blue, key: true}, true
	case engine.Judged:
		s := said{gate: f.Gate, subject: round(f.Gate, f.N), text: render.Judge(f.ByKind) + ": " + f.Outcome, key: true, style: console.Green}
		if f.Word != "" && f.Word != f.Outcome {
			s.text += " (its word: " + f.Word + ")"
		}
		if f.Score != nil {
			s.text += fmt.Sprintf(", score %g", *f.Score)
		}
		if f.Outcome != engine.OutcomePass {
			s.style = console.Yellow
		}
		s.text = because(s.text, f.Feedback)
		return s, true
	case engine.Inconclusive:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: because("review came to nothing", f.Why) + notBefore(f.NotBefore), style: console.Yellow, key: true}, true
	case engine.Agreed:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "reviewer agrees; a person is told", style: console.Dim}, true
	case engine.WindowOpened:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "goes on unless you veto" + until(f.Until) + ": sluice veto " + f.Gate, style: console.Yellow, key: true}, true
	case engine.GateFailed:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: fmt.Sprintf("failure %d counted", f.Count), style: console.Dim}, true
	case engine.RouteCounted:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: fmt.Sprintf("%s %d counted", f.Route, f.Count), style: console.Dim}, true
	case engine.RetryContextOwed:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "why it failed is written to " + f.Path, key: true}, true
	case engine.OutputsOwed:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "its outputs are to be written", style: console.Dim}, true
	case engine.ExhaustedTo:
		return said{gate: f.Gate, subject: f.Gate, text: "it went back as often as it may → " + f.To + " (on_exhausted)", style: console.Yellow, key: true}, true
	case engine.CountRenewed:
		return said{gate: f.Gate, subject: f.Gate, text: "its counts begin anew: the step of on_exhausted has passed", style: console.Dim}, true
	case engine.CountReset:
		return said{gate: f.Gate, subject: f.Gate, text: "its counts begin anew", style: console.Dim}, true
	}
	return said{}, false
}

// sayHuman is of what asks a person, and of how rounds end.
func sayHuman(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.HumanAsked:
		s := said{gate: f.Gate, subject: round(f.Gate, f.N), text: "asks you (" + whyWords(f.Why) + "): sluice show " + f.Gate, style: console.Yellow, key: true}
		if f.Forced {
			s.text += "; it is yours for the rest of the run"
		}
		return s, true
	case engine.Reminded:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: "still asks you: sluice show " + f.Gate, style: console.Yellow, key: true}, true
	case engine.SignatureUsed:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: fmt.Sprintf("%s signed by %s with %s", f.Outcome, f.By.Who, f.By.Key), style: console.Dim}, true
	case engine.RoundPassed:
		by := "passed by " + byWords(f.ByKind, f.By)
		if gave := form.Shown(f.Answer); gave != "" {
			by += " with " + gave
		}
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: because(by, cmp.Or(f.Feedback, f.Text)), style: console.Green, key: true}, true
	case engine.RoundFailed:
		outcome := f.Outcome
		if outcome == engine.OutcomeFail {
			outcome = "failed"
		}
		text := outcome + " by " + byWords(f.ByKind, f.By) + " → " + f.To
		if f.LetThrough > 0 {
			text += fmt.Sprintf(" (not passed, and goes on after %s)", plural(f.LetThrough, "failure"))
		}
		if f.Forced {
			text += " (it has failed as often as it may: from here on the gate asks you)"
		}
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: because(text, f.Feedback), style: console.Red, key: true}, true
	case engine.RoundRouted:
		text := f.Outcome + " by " + byWords(f.ByKind, f.By) + " → " + f.To
		if f.Times > 1 {
			text += fmt.Sprintf(" (time %d)", f.Times)
		}
		if f.LetThrough > 0 {
			text += " (not passed, and goes on)"
		}
		if f.Forced {
			text += " (it said so as often as it may: from here on the gate asks you)"
		}
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: because(text, f.Feedback), style: console.Yellow, key: true}, true
	case engine.RoundVoided:
		return said{gate: f.Gate, subject: round(f.Gate, f.N), text: because("void", f.Why), style: console.Yellow, key: true}, true
	}
	return said{}, false
}

// whyWords says why a person is asked.
func whyWords(why string) string { return render.Why(why) }

// byWords says who decided a round.
func byWords(kind string, by *engine.Actor) string { return render.By(kind, by) }

// sayRepo is of what concerns no step and no gate.
func sayRepo(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.SettingsTaken:
		return said{text: "settings taken", style: console.Dim}, true
	case engine.AdvanceOwed:
		return said{text: fmt.Sprintf("the work of %s is to go onto its branch", attempt(f.Step, f.N)), style: console.Dim}, true
	case engine.RewindOwed:
		return said{text: fmt.Sprintf("the work of %s is to be taken off its branch", attempt(f.Step, f.N)), style: console.Dim}, true
	case engine.LandingOwed:
		return said{text: "its work is to be landed", style: console.Dim}, true
	case engine.WriteDone:
		return said{text: because("written: "+f.ID, f.Why), style: console.Dim}, true
	case engine.DayBudgetNeared:
		return said{text: because("the day's budget comes to its end", f.Text), style: console.Yellow, key: true}, true
	case engine.FileTaken:
		if f.Move.Why != "" {
			return said{text: "file " + f.Move.Name + " rejected: " + f.Move.Why, style: console.Yellow, key: true}, true
		}
		return said{text: "file " + f.Move.Name + " taken in", style: console.Dim}, true
	case engine.FileGone:
		return said{text: "file moved out of the inbox", style: console.Dim}, true
	case engine.NoticeOwed:
		return said{gate: f.Notice.Gate, subject: f.Notice.Gate, text: because("you are to be told ("+f.Notice.Kind+")", f.Notice.Text), style: console.Dim}, true
	case engine.NoticeTried:
		return said{gate: f.Gate, subject: f.Gate, text: because("you were told", strings.Join(f.Results, ", ")), style: console.Dim}, true
	case engine.Ignored:
		return said{text: because("nothing came of "+f.What+who(f.Who), f.Why), style: console.Yellow, key: true}, true
	}
	return said{}, false
}

// factRun is the run a line of the journal is about.
func factRun(l daemon.Line) string {
	var head struct {
		Run string `json:"run"`
	}
	if json.Unmarshal(l.Fact, &head) != nil {
		return ""
	}
	return head.Run
}

// line lays a fact out for a person: time, run (unless it is known), subject, words.
func (a *app) line(l daemon.Line, s said, withRun bool) string {
	run := ""
	if c := childName(factRun(l)); c != "" && !withRun { // of a child run, beside those of its parent
		s.subject = strings.TrimSpace(c + " " + s.subject)
	}
	if withRun {
		run = console.Pad(clean(factRun(l)), 1) + "  "
	}
	text := fmt.Sprintf("%s  %s%s  ", clock(l.At), run, console.Pad(clean(s.subject), subjectWidth))
	if w := a.Width(); w > 0 {
		s.text = console.Clip(s.text, max(w-len(clock(l.At))-subjectWidth-4-len(run), 20))
	}
	return a.Paint(console.Dim, text) + a.Paint(s.style, s.text)
}

// subjectWidth is the column of steps and gates in a log.
const subjectWidth = 12
