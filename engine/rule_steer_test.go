package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

func (s *script) takes(step string) string {
	return ignored(s.do(TakeoverRequested{Run: s.run, Step: step, By: ann}))
}

func (s *script) hands(step, text string, done bool) string {
	return ignored(s.do(HandbackRequested{Run: s.run, Step: step, Text: text, Done: done, By: ann}))
}

// TestSteerNote: a note is kept with its run, limited in size, and only if somebody can read it.
func TestSteerNote(t *testing.T) {
	s := begin(t, "7-agents note", "a person's words are kept for the next attempts of a run", one())
	note := func(step, text string) string {
		return ignored(s.do(NoteGiven{Run: s.run, Step: step, Text: text, By: ann}))
	}
	s.want(note("", " use the old parser \n"), "", note("a", "mind the BOM"), "")
	s.want(fmt.Sprint(s.r().Notes[0].Text, s.r().Notes[0].N, s.r().Notes[0].By.Who, s.r().Notes[1].Step), "use the old parser1anna")
	s.has(note("zz", "x"), "no step zz")
	s.has(note("", " \n"), "the note is empty")
	s.has(note("", strings.Repeat("x", MaxNote+1)), "more than 4 KiB")
	s.has(ignored(s.do(NoteGiven{Run: "zz-1", Text: "x"})), "no run zz-1")
	for i := len(s.r().Notes); i < MaxNotes; i++ {
		s.want(note("", "again"), "")
	}
	s.has(note("", "once more"), "the maximum")
	s.restart(0)
	s.want(fmt.Sprint(len(s.r().Notes)), fmt.Sprint(MaxNotes))
	s.do(AbortRequested{Run: s.run, By: ann})
	s.has(note("", "x"), "is over")
}

// TestSteerTakeover: the agent is stopped, the attempt stays the same, nothing is launched in its
// place or worktree, its time is not the run's, and after the handback it continues with the next
// launch.
func TestSteerTakeover(t *testing.T) {
	w := flow("x", aStep("a", tree("t")), aGate("a", to(EndDone)), aStep("b", tree("t"), needs()), aGate("b", to(EndDone)))
	limits(func(l *Limits) { l.MaxDuration = Duration(time.Hour) })(w)
	s := begin(t, "7-agents takeover", "the step is held: its agent is ended, nothing of it is launched, and it keeps its attempt and worktree", w)
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready")
	s.want(s.takes("a"), "", fmt.Sprint(s.owes(DoStop, s.run+"/a#1.1")), "true")
	s.has(s.takes("a"), "taken over already, by ann")
	s.has(s.hands("a", "", false), "being stopped")
	s.exit("a", Exit{Stopped: true, Signal: "terminated"})
	s.want(s.step("a"), "1 ready", fmt.Sprint(s.r().Current("a").Restarts, s.r().Fails["ga"]), "0 0")
	s.restart(time.Minute)
	s.later(10 * time.Hour) // a person takes their time; b waits for the worktree
	s.want(s.r().Phase, RunRunning, s.step("a"), "1 ready", s.step("b"), "1 ready")
	s.sentinel("a", StatusDone)
	s.want(s.step("a"), "1 ready") // it is held: the words are the person's
	s.want(s.hands("a", "leave main.go alone", false), "", s.step("a"), "1 running", fmt.Sprint(s.r().Current("a").K), "2")
	s.want(fmt.Sprint(s.r().Notes[0].Step, s.r().Notes[0].Text), "aleave main.go alone")
	s.has(s.hands("a", "", false), "not taken over")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("a"), "1 passed", s.step("b"), "1 running")
	s.has(s.takes("a"), "not at work")
}

// TestSteerHandbackDone: the person's report counts as the step's: it is checked and judged as
// always.
func TestSteerHandbackDone(t *testing.T) {
	w := one()
	w.Protect = []string{"x"}
	s := begin(t, "7-agents handback", "a person's word that the step is done is its signal: checked and judged as always", w)
	s.want(s.takes("a"), "")
	s.exit("a", Exit{Stopped: true})
	s.want(s.hands("a", "did it by hand", true), "", s.step("a"), "1 signalled", s.r().Current("a").Summary, "did it by hand")
	s.checked()
	s.want(s.gate("ga"), "1 reviewing")
	s.judged("ga", OutcomeFail)
	s.writes()
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Fails["ga"]), "1")
}

// TestSteerTakeoverOfWhatEnds: what the agent reported before it was stopped counts.
func TestSteerTakeoverOfWhatEnds(t *testing.T) {
	s := begin(t, "", "", one())
	s.takes("a")
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{Stopped: true})
	s.checked()
	s.want(s.gate("ga"), "1 reviewing", fmt.Sprint(s.r().Current("a").Held == nil), "true")
	s.has(s.takes("a"), "already reported")

	s = begin(t, "", "", one()) // in the grace after its exit
	s.exit("a", Exit{})
	s.takes("a")
	s.later(time.Hour)
	s.scan()
	s.want(s.step("a"), "1 ready")

	s = begin(t, "", "", one()) // the last launch there is
	for _, e := range []Exit{{Signal: "killed"}, {Class: ClassFatal, Why: "no login"}, {Class: ClassLimit}, {Code: 3}} {
		s.takes("a")
		s.exit("a", e)
		s.want(s.step("a"), "1 ready", fmt.Sprint(s.r().Paused, s.r().Current("a").Restarts, s.r().Current("a").Waits), "false 0 0")
		s.want(s.hands("a", "", false), "", s.step("a"), "1 running")
	}

	w := one() // its exit is its word
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s = begin(t, "", "", w)
	s.takes("a")
	s.exit("a", Exit{})
	s.checked()
	s.want(s.gate("ga"), "1 reviewing")
	s = begin(t, "", "", w)
	s.takes("a")
	s.exit("a", Exit{Stopped: true})
	s.want(s.step("a"), "1 ready")
}

// TestSteerTakeoverRefused: a refused takeover states its reason; abort and retry treat a held step
// like others.
func TestSteerTakeoverRefused(t *testing.T) {
	conform.Rule(t, "7-agents takeover", "what cannot be taken over says why")
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to("c")),
		&Step{ID: "c", Name: "c", Run: &Command{Shell: "true"}, Signal: Signal{Type: SignalExit}, Gates: []string{"gc"}}, aGate("c", to(EndDone)))
	s := begin(t, "", "", w)
	s.has(s.takes("b"), "not at work")
	s.has(s.takes("c"), "is a command")
	s.has(s.takes("z"), "no step z")
	s.has(ignored(s.do(TakeoverRequested{Run: "z-1", Step: "a"})), "no run z-1")
	s.has(s.hands("a", "x", true), "not taken over")
	s.takes("a")
	s.exit("a", Exit{Stopped: true})
	s.do(RetryRequested{Run: s.run, Step: "a", By: ann})
	s.want(s.step("a"), "2 running")
	s.takes("a")
	s.exit("a", Exit{Stopped: true})
	s.do(PauseRequested{Run: s.run, By: ann})
	s.want(s.hands("a", "", false), "", s.step("a"), "2 ready")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("a"), "2 running")
	s.takes("a")
	s.do(AbortRequested{Run: s.run, By: ann})
	s.has(s.hands("a", "", false), "is over")

	w = flow("x", aStep("a", tree("t")), aGate("a", to(EndDone)), aStep("b", tree("t"), needs()), aGate("b", to(EndDone)))
	s = begin(t, "", "", w)
	s.exit("a", Exit{Signal: "killed"}) // it waits before its next launch, and b is in the worktree meanwhile
	s.want(s.step("a"), "1 ready", s.step("b"), "1 running")
	s.has(s.takes("a"), "waits for its worktree, which is in use")
	s.takes("b")
	s.exit("b", Exit{Stopped: true})
	s.has(s.takes("a"), "which is in use")
	s.later(time.Hour)
	s.want(s.step("a"), "1 ready", s.hands("b", "", false), "", s.step("a"), "1 running")
}
