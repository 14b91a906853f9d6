package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
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

// Bookkeeping reports whether a person who reads the log can do without the line: it is not
// important and warns of nothing.
func (s FactLine) Bookkeeping() bool { return !s.Key && s.Style != console.Yellow }

// Fact returns a fact in words, with foreign texts cleaned.
func Fact(raw json.RawMessage) FactLine {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return FactLine{Text: text.Line(string(raw)), Style: console.Yellow}
	}
	for _, words := range []func(engine.Fact) (FactLine, bool){sayRun, sayStep, sayProcess, sayGate, sayHuman, sayRepo,
		sayTasks, sayTrigger} {
		if s, ok := words(f); ok {
			s.Text = text.Line(s.Text)
			if s.Subject == "" && s.Step != "" {
				s.Subject = s.Step
			}
			return s
		}
	}
	return FactLine{Text: f.FactKind(), Style: console.Dim}
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

func sayRun(f engine.Fact) (FactLine, bool) {
	switch f := f.(type) {
	case engine.RunStarted:
		if c := f.Child; c != nil {
			what := "child run of " + c.Step
			if c.Task != "" {
				what = fmt.Sprintf("task %s of %s, try %d", text.Line(c.Task), c.Step, c.Try)
			}
			return FactLine{Text: what, Style: console.Bold, Key: true}, true
		}
		what := fmt.Sprintf("run of %s asked for%s", f.Workflow, Who(&f.By))
		if f.Fired != nil {
			what += ": " + f.Fired.Trigger + " " + f.Fired.Key
		}
		if len(f.Stubs) > 0 {
			what += "; " + StubWords
		}
		return FactLine{Text: what, Style: console.Bold, Key: true}, true
	case engine.RunBegan:
		return FactLine{Text: "run began", Style: console.Dim}, true
	case engine.RunPaused:
		return FactLine{Text: PausedWords(f), Style: console.Yellow, Key: true}, true
	case engine.RunResumed:
		return FactLine{Text: "resumed" + Who(f.By), Style: console.Bold, Key: true}, true
	case engine.RunEnded:
		_, style := Mark(f.Phase)
		words := Because("run "+f.Phase+Who(f.By), f.Why)
		if strings.HasPrefix(f.Why, f.Phase+" by ") { // a person's words say so themselves
			words = "run " + f.Why
		} else if f.Cause == engine.CausePerson {
			words = Because("run "+f.Phase, f.Why)
		}
		return FactLine{Text: words, Style: style, Key: true}, true
	case engine.RunReopened:
		return FactLine{Text: "continued" + Who(f.By), Style: console.Bold, Key: true}, true
	case engine.NoteTaken:
		return FactLine{Step: f.Step, Text: fmt.Sprintf("note %d%s: %s", f.N, Who(&f.By), f.Text), Style: console.Bold,
			Key: true}, true
	case engine.BudgetNeared:
		return FactLine{Text: Because("a budget is nearly used up", f.Text), Style: console.Yellow, Key: true}, true
	case engine.BudgetLifted:
		return FactLine{Text: "the day's budget was changed: waiting launches continue", Style: console.Dim, Key: true}, true
	case engine.RunForgotten:
		return FactLine{Text: "removed from the list of runs; the journal keeps it", Style: console.Dim, Key: true}, true
	}
	return FactLine{}, false
}

func sayStep(f engine.Fact) (FactLine, bool) {
	switch f := f.(type) {
	case engine.NeedsMet:
		return FactLine{Step: f.Step, Text: "its needs are met: " + strings.Join(f.Pins, ", ")}, true
	case engine.StepStarted:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "is due" + inTree(f.Worktree),
			Style: console.Dim}, true
	case engine.StepSkipped:
		return FactLine{Step: f.Step, Text: "skipped: `when` is false: " + f.When, Key: true}, true
	case engine.StepLaunched:
		s := FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N),
			Text: "launched, until " + Clock(f.Deadline) + " at the latest", Style: console.Blue, Key: true}
		if f.Person {
			s.Text, s.Style, s.Key = fmt.Sprintf("launch %d is the person's", f.K), console.Dim, false
		} else if f.Offered {
			s.Text = "on offer: `sluice next` shows it"
		} else if f.K > 1 {
			s.Text = fmt.Sprintf("launched again (%d)", f.K)
		}
		return s, true
	case engine.StepClaimed:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "taken" + Who(&f.By), Key: true}, true
	case engine.GraceBegan:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N),
			Text: "ended without its signal; it may still come" + until(f.Until), Style: console.Yellow}, true
	case engine.StepSignalled:
		return saySignal(f), true
	case engine.StepHeld:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "taken over" + Who(&f.By),
			Style: console.Yellow, Key: true}, true
	case engine.StepHandedBack:
		s := FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "handed back" + Who(&f.By), Style: console.Bold,
			Key: true}
		if f.Done {
			s.Text = "handed back as done" + Who(&f.By)
		}
		return s, true
	case engine.StepRelaunched:
		if f.Class == "takeover" {
			return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N),
				Text: "its agent has ended; it is launched again when it is handed back", Style: console.Dim}, true
		}
		again := "to be launched again"
		if f.Class == engine.ClassInfrastructure { // which counts as a restart
			again += " (" + f.Class + ")"
		}
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: Because(again, f.Why) + notBefore(f.NotBefore),
			Style: console.Yellow, Key: true}, true
	case engine.WorkLost:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N),
			Text: Because("to be launched again", f.Why) + notBefore(f.NotBefore), Style: console.Yellow, Key: true}, true
	case engine.Checked:
		return sayCheck(f), true
	case engine.StepPassed:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "passed → " + strings.Join(f.To, ", "),
			Style: console.Green, Key: true}, true
	case engine.StepRouted:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "sent on → " + f.To, Key: true}, true
	case engine.StepSuperseded:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: Because("undone", f.Why), Style: console.Dim}, true
	case engine.WorkSent:
		return FactLine{Step: f.Step, Text: "the work was sent here from " + f.From, Key: true}, true
	case engine.WorkUnsent:
		return FactLine{Step: f.Step, Text: "the transfer of work to this step was undone", Style: console.Dim}, true
	}
	return FactLine{}, false
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
	s := FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: f.Status, Key: true}
	if OwnWord(f.Via, f.Broken) {
		s.Text = "says " + f.Status
		if f.Via != "" {
			s.Text += " (" + f.Via + ")"
		}
	}
	s.Text = Because(s.Text, f.Summary)
	for _, why := range []string{f.Failure, f.Broken, f.Question} {
		s.Text = Because(s.Text, why)
	}
	if f.Status != engine.StatusDone {
		s.Style = console.Yellow
	}
	return s
}

func sayCheck(f engine.Checked) FactLine {
	s := FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "outputs and criterion hold", Style: console.Green}
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

func sayProcess(f engine.Fact) (FactLine, bool) {
	switch f := f.(type) {
	case engine.StopOrdered:
		return FactLine{Subject: shortKey(f.Key), Text: Because("is being stopped", f.Why), Style: console.Yellow,
			Key: true}, true
	case engine.ProcessGone:
		return FactLine{Subject: shortKey(f.Key), Text: "process gone: " + exitWords(f.Exit), Style: console.Dim}, true
	case engine.UsageCounted:
		return FactLine{Subject: shortKey(f.Key), Text: "has used " + UsageWords(f.Usage) + " so far",
			Style: console.Dim}, true
	case engine.CheckStarted:
		return FactLine{Step: f.Step, Subject: Attempt(f.Step, f.N), Text: "outputs and criterion are being checked",
			Style: console.Dim}, true
	case engine.HookStarted:
		return FactLine{Step: f.Step, Text: "hook runs", Style: console.Dim}, true
	case engine.ClockHeld:
		return FactLine{Subject: shortKey(f.Key),
			Text: "waits until another agent has ended (max_agents); its time-out has not begun", Style: console.Yellow,
			Key: true}, true
	case engine.ClockBegun:
		return FactLine{Subject: shortKey(f.Key), Text: "its turn has come; time-out at " + Clock(f.Deadline),
			Style: console.Dim}, true
	case engine.ClockShifted:
		return FactLine{Style: console.Yellow,
			Text: "another machine decides, by a clock that differs by " + f.By.String() + ": all times of the run moved"}, true
	case engine.DeadlineMoved:
		return FactLine{Step: f.Step, Gate: f.Gate, Subject: f.Step + f.Gate,
			Text: Because("deadline moved to "+Clock(f.To), f.Why), Style: console.Yellow}, true
	}
	return FactLine{}, false
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
func sayRepo(f engine.Fact) (FactLine, bool) {
	switch f := f.(type) {
	case engine.SettingsTaken:
		return FactLine{Text: "settings taken", Style: console.Dim}, true
	case engine.AdvanceOwed:
		return FactLine{Text: fmt.Sprintf("the work of %s will go onto its branch", Attempt(f.Step, f.N)),
			Style: console.Dim}, true
	case engine.RewindOwed:
		return FactLine{Text: fmt.Sprintf("the work of %s will be taken off its branch", Attempt(f.Step, f.N)),
			Style: console.Dim}, true
	case engine.LandingOwed:
		return FactLine{Text: "its work will be landed", Style: console.Dim}, true
	case engine.WriteDone:
		return FactLine{Text: Because("written: "+f.ID, f.Why), Style: console.Dim}, true
	case engine.DayBudgetNeared:
		return FactLine{Text: Because("the day's budget is nearly used up", f.Text), Style: console.Yellow, Key: true}, true
	case engine.FileTaken:
		if f.Move.Why != "" {
			return FactLine{Text: "file " + f.Move.Name + " rejected: " + f.Move.Why, Style: console.Yellow, Key: true}, true
		}
		return FactLine{Text: "file " + f.Move.Name + " taken in", Style: console.Dim}, true
	case engine.FileGone:
		return FactLine{Text: "file moved out of the inbox", Style: console.Dim}, true
	case engine.NoticeOwed:
		return FactLine{Gate: f.Notice.Gate, Subject: f.Notice.Gate,
			Text: Because("a notice is due ("+f.Notice.Kind+")", f.Notice.Text), Style: console.Dim}, true
	case engine.NoticeTried:
		return FactLine{Gate: f.Gate, Subject: f.Gate, Text: Because("notice sent", strings.Join(f.Results, ", ")),
			Style: console.Dim}, true
	case engine.Ignored:
		return FactLine{Text: Because("ignored: "+asked(f.What)+Who(f.Who), f.Why), Style: console.Yellow, Key: true}, true
	}
	return FactLine{}, false
}

// FactRun returns the run of a line of the journal.
func FactRun(l daemon.Line) string {
	var head struct {
		Run string `json:"run"`
	}
	if json.Unmarshal(l.Fact, &head) != nil {
		return ""
	}
	return head.Run
}

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
		return text.Line(FactRun(l)), text.Line(s.Subject)
	}
	// of a child run, beside its parent's
	return "", text.Line(strings.TrimSpace(childName(FactRun(l)) + " " + s.Subject))
}

// Said returns facts that a command has brought about in lines that fit the terminal: subject and words.
func Said(c *console.Console, facts []FactLine) (out []string) {
	t := &console.Table{Columns: []console.Column{{Least: subjectLeast, Most: subjectMost}, {Fit: console.Wrapped}}}
	for _, f := range facts {
		t.Row(console.Styled(text.Line(f.Subject), console.Dim), console.Styled(f.Text, f.Style))
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
