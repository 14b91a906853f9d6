package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

func TestRule36Restarts(t *testing.T) {
	s := begin(t, "8-semantics 36", "a deadline not yet reached is kept, whatever restarts", one(level(LevelHuman), func(g *Gate) { g.Timeout, g.OnTimeout = Duration(time.Hour), EndFailed }))
	conform.Rule(t, "field asks restart", "a restart never resets a deadline")
	deadline := s.r().Current("a").Deadline
	for range 5 {
		s.restart(5 * time.Minute)
	}
	s.want(fmt.Sprint(s.r().Current("a").Deadline.Equal(deadline), count[DeadlineMoved](s.log)), "true 0")
	s.done("a")
	due := s.r().CurrentRound("ga").Due
	s.restart(20 * time.Minute)
	s.want(fmt.Sprint(s.r().CurrentRound("ga").Due.Equal(due)), "true")
}

// TestTimeoutBeginsWithTheProcess: while a launch waits for one of max_agents its time-out does not
// run; it runs in full from the start, over restarts too.
func TestTimeoutBeginsWithTheProcess(t *testing.T) {
	s := begin(t, "", "the time-out of a launch that has to wait begins with its process", one())
	key := "x-1/a#1.1"
	whole := s.r().Current("a").Deadline.Sub(s.now)
	s.later(time.Second)
	s.do(SlotTaken{Run: s.run, Key: key}) // it did not wait
	s.want(s.r().Current("a").Deadline.Sub(s.now).String(), (whole - time.Second).String())
	s.do(SlotAwaited{Run: s.run, Key: key})
	s.do(SlotAwaited{Run: s.run, Key: key})
	s.want(fmt.Sprint(count[ClockHeld](s.log)), "1")
	s.later(3 * whole)
	s.restart(3 * whole)
	s.want(fmt.Sprint(len(s.owed(DoStop))), "0", s.step("a"), "1 running")
	s.do(SlotTaken{Run: s.run, Key: "x-1/a#1.2"}) // of no launch that lives
	s.do(SlotTaken{Run: s.run, Key: key})
	s.want(s.r().Current("a").Deadline.Sub(s.now).String(), whole.String())
	s.restart(0)
	s.later(whole - time.Second)
	s.want(fmt.Sprint(len(s.owed(DoStop))), "0")
	s.later(2 * time.Second)
	s.want(fmt.Sprint(s.owes(DoStop, key)), "true")
	s.do(SlotAwaited{Run: s.run, Key: key}) // too late
	s.want(fmt.Sprint(count[ClockHeld](s.log)), "1")

	s = begin(t, "", "", one())
	s.done("a")
	key = s.r().CurrentRound("ga").Key
	s.do(SlotAwaited{Run: s.run, Key: key})
	s.later(3 * whole)
	s.want(fmt.Sprint(len(s.owed(DoStop))), "0", s.gate("ga"), "1 reviewing")
	s.do(SlotTaken{Run: s.run, Key: key})
	s.later(s.r().CurrentRound("ga").Deadline.Sub(s.now) + time.Second)
	s.want(fmt.Sprint(s.owes(DoStop, key)), "true")
}

func TestRule36PassedInAGap(t *testing.T) {
	s := begin(t, "8-semantics 36", "one that passed while the daemon was away is opened again once: an agent's time-out by the gap", one())
	deadline := s.r().Current("a").Deadline
	s.restart(3 * time.Hour)
	s.want(fmt.Sprint(s.r().Current("a").Deadline.Equal(deadline.Add(3*time.Hour)), len(s.owed(DoStop))), "true 0")
	s.restart(3 * time.Hour)
	s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "true")
	s = window(t, "8-semantics 36", "a veto window that passed in a gap is opened again for min(veto_window, 30s), with a new notice", func(g *Gate) { d := Duration(10 * time.Minute); g.VetoWindow = &d })
	s.restart(time.Hour)
	s.scan()
	s.want(s.gate("ga"), "1 window", s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "30s", fmt.Sprint(len(s.owed(DoNotify))), "1")
	s.restart(time.Hour)
	s.scan()
	s.want(s.gate("ga"), "1 passed")
	s = begin(t, "8-semantics 36", "a person's deadline that passed in a gap is opened again for 10 min, with a reminder", one(level(LevelHuman), func(g *Gate) { g.Timeout, g.OnTimeout = Duration(time.Hour), EndFailed }))
	s.done("a")
	s.tell()
	s.restart(5 * time.Hour)
	s.want(s.r().Phase, RunRunning, s.r().CurrentRound("ga").Due.Sub(s.now).String(), "10m0s", s.owed(DoNotify)[0].Notice.Kind, NoticeReminder)
	s.later(11 * time.Minute)
	s.want(s.r().Phase, RunFailed)
}

// A laptop that sleeps while an agent is at work used to have its run ended on waking up.
func TestRule36AGapCountsForNoLimit(t *testing.T) {
	limited := func() *Spec {
		w := one()
		limits(func(l *Limits) { l.MaxDuration = Duration(10 * time.Minute) })(w)
		return w
	}
	s := begin(t, "8-semantics 36", "the time in which sluice was away counts for no limit of a run's time", limited())
	s.later(4 * time.Minute)
	s.restart(3 * time.Hour)
	s.want(s.r().Phase, RunRunning, time.Duration(s.r().Spent).String(), "4m0s")
	s.later(5 * time.Minute)
	s.want(s.r().Phase, RunRunning)
	s.later(time.Minute)
	s.want(s.r().Phase, RunAborted, s.r().EndLimit, "max_duration")
	s = begin(t, "8-semantics 36", "nor for that of an agent's role or of a day", limited())
	s.later(4 * time.Minute)
	s.restart(3 * time.Hour)
	s.later(time.Minute)
	s.do(ProcessEnded{Run: s.run, Key: s.run + "/a#1.1", Day: "2027-01-15"})
	s.want(time.Duration(s.r().Roles["dev"].Time).String(), "5m0s", time.Duration(s.st.Today.Usage.Time).String(), "5m0s")
	s = begin(t, "8-semantics 36", "a run that waits for a person has no such time", one(level(LevelHuman)))
	s.done("a")
	s.restart(3 * time.Hour)
	s.want(fmt.Sprint(count[TimeLost](s.log)), "0")
}

func TestRule36ShortGaps(t *testing.T) {
	s := window(t, "8-semantics 36", "a gap of at most 30 s re-opens nothing, and neither does a clock set back")
	s.later(20 * time.Second)
	s.restart(GapAllowed)
	s.scan()
	s.want(s.gate("ga"), "1 passed", fmt.Sprint(count[DeadlineMoved](s.log)), "0")
	s = window(t, "8-semantics 36", "a clock set back re-opens nothing")
	s.do(Woken{From: s.now, To: s.now.Add(-time.Hour)})
	s.now = s.now.Add(-time.Hour)
	s.scan()
	s.do(Ticked{})
	s.want(s.gate("ga"), "1 window", fmt.Sprint(count[DeadlineMoved](s.log)), "0")
	s.now = s.now.Add(time.Hour + 31*time.Second)
	s.scan()
	s.want(s.gate("ga"), "1 passed")
}

// A run whose work is on another machine is paused with the reason; a person resumes it.
func TestUnreadWork(t *testing.T) {
	s := begin(t, "", "", one())
	s.do(SpecUnread{Run: s.run, Why: "the work of x-1 is not on this machine", Lacks: PausedWork})
	s.want(fmt.Sprint(s.r().Paused, " ", s.r().PausedWhy), "true work")
	s.has(s.owed(DoNotify)[0].Notice.Text, "not on this machine")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(fmt.Sprint(s.r().Paused), "false")
}

func TestRule37UnreadSpec(t *testing.T) {
	s := begin(t, "8-semantics 37", "a pinned spec that this release cannot load pauses the run and says so", one())
	kept := s.specs["d-x"]
	delete(s.specs, "d-x")
	s.do(SpecUnread{Run: s.run, Why: "the spec it was started with cannot be read by this release: unknown key for_all"})
	s.want(fmt.Sprint(s.r().Paused, " ", s.r().PausedWhy), "true spec")
	s.has(s.owed(DoNotify)[0].Notice.Text, "cannot be read by this release", "for_all")
	s.has(ignored(s.do(ResumeRequested{Run: s.run, By: ann})), "cannot be read")
	s.do(ProcessEnded{Run: s.run, Key: "x-1/a#1.1", Exit: Exit{Code: 0}}) // nothing is lost meanwhile
	s.specs["d-x"] = kept
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(fmt.Sprint(s.r().Paused), "false")
	s.later(10 * time.Second)
	s.scan()
	s.checked()
	s.has(s.r().Rounds["ga"][0].Feedback, "without its signal")
}

func TestRuleFatal(t *testing.T) {
	s := begin(t, "7-agents classes", "fatal: the run pauses and a person is told what to do; it counts as nothing", one())
	s.exit("a", Exit{Class: ClassFatal, Why: "not logged in: run claude login"})
	s.want(fmt.Sprint(s.r().Paused, " ", s.r().PausedWhy), "true fatal", s.step("a"), "1 ready")
	s.has(s.owed(DoNotify)[0].Notice.Text, "not logged in")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("a"), "1 running", fmt.Sprint(s.r().Current("a").Restarts), "0")
}

func TestRuleVars(t *testing.T) {
	w := one()
	w.Vars = []Var{{Name: "goal", Required: true}, {Name: "mode", Default: "full"}, {Name: "n", Default: 3.0}, {Name: "dry", Default: false}}
	conform.Rule(t, "1-language vars", "a value is the default and gives the type; what is wrong is told and starts nothing")
	s := &script{world: newWorld(t, w)}
	req := func(vars map[string]any) string {
		return ignored(s.do(RunRequested{Workflow: "x", Digest: "d-x", Vars: vars}))
	}
	s.has(req(nil), "wants the var goal", "--var goal=")
	s.has(req(map[string]any{"goal": "g", "mod": "x"}), "no var mod", "did you mean mode?")
	s.has(req(map[string]any{"goal": "g", "n": "three"}), "var n", "want a value like 3")
	s.has(req(map[string]any{"goal": "g", "dry": "perhaps"}), "var dry")
	s.want(fmt.Sprint(len(s.st.Runs)), "0", req(map[string]any{"goal": "g", "n": "5", "dry": "true"}), "")
	s.want(fmt.Sprint(s.st.Runs["x-1"].Vars), "map[dry:true goal:g mode:full n:5]")
}

func TestRule11SpecIsPinned(t *testing.T) {
	s := begin(t, "1-language 11", "a run goes by the spec as it was when it started", two(nil, nil))
	changed := flow("x", aStep("a"), aGate("a", to(EndDone)))
	changed.Digest = "d-new"
	if f := changed.Link(); f != nil {
		t.Fatal(f)
	}
	s.specs["d-new"] = changed
	s.do(RunRequested{Workflow: "x", Digest: "d-new"})
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "1 running")
	s.do(AbortRequested{Run: s.run, By: ann})
	s.run = "x-2"
	s.writes()
	for _, e := range s.owed(DoStop) {
		s.do(ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Stopped: true}})
	}
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

func TestRuleForgetting(t *testing.T) {
	s := begin(t, "2-files journal", "a start costs the live runs, not the history: the oldest ended runs leave the state", one())
	for range KeepEnded + 5 {
		s.done("a")
		s.judged("ga", OutcomePass)
		s.start("x")
	}
	if n := len(s.st.Runs); n != KeepEnded+1 {
		t.Errorf("%d runs are kept, want %d and the live one", n, KeepEnded)
	}
	s.want(s.run, fmt.Sprintf("x-%d", KeepEnded+6))
	s.replayed()
}
