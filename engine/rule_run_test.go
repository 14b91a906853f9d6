package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

var ann = Actor{Who: "ann", Via: "command", Trust: TrustFile}

func limits(f func(*Limits)) func(*Spec) {
	return func(s *Spec) {
		if s.Limits.OnHit == nil {
			s.Limits.OnHit = map[string]string{}
		}
		f(&s.Limits)
	}
}

func TestRule28Completed(t *testing.T) {
	conform.Rule(t, "1-language rule 2", "a branch ends at DONE; completed when nothing is at work")
	w := flow("x", aStep("a"), aGate("a", to(EndDone)), aStep("b", needs()), aGate("b", to(EndDone), onFail(EndDone)))
	s := begin(t, "8-semantics 28", "completed: nothing active and no process of the run left; a branch's DONE alone ends nothing else", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunRunning, s.step("b"), "1 running")
	s.done("b")
	s.says("gb", OutcomeFail) // to DONE, and its reviewer is still alive
	s.want(s.step("b"), "1 routed", s.r().Phase, RunRunning, fmt.Sprint(s.owes(DoStop, "x-1/gb#1.1")), "true")
	s.do(ProcessEnded{Run: s.run, Key: "x-1/gb#1.1", Exit: Exit{Stopped: true}})
	s.want(s.r().Phase, RunCompleted)
}

func TestRule28Ends(t *testing.T) {
	conform.Rule(t, "1-language rule 2", "FAILED ends the run at once and stops what runs")
	conform.Rule(t, "3-engine stop", "stops are owed until all are seen gone")
	w := flow("x", aStep("a"), aGate("a", to(EndFailed)), aStep("b", needs()), aGate("b", to(EndDone)))
	s := begin(t, "8-semantics 28", "failed and aborted: at once, in one fact; live attempts and rounds are superseded, stops owed until all are seen gone", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunFailed, s.step("b"), "-", fmt.Sprint(s.owes(DoStop, "x-1/b#1.1")), "true")
	s.sentinel("b", StatusDone)
	s.want(s.r().Attempts["b"][0].State, Superseded)
	s.do(ProcessEnded{Run: s.run, Key: "x-1/b#1.1", Exit: Exit{Stopped: true}})
	s.want(fmt.Sprint(len(s.owed(DoStop)), len(s.r().Procs)), "0 0")
}

func TestRule29Pause(t *testing.T) {
	s := begin(t, "8-semantics 29", "pause withholds starts, launches and reviews; what runs goes on and its results are taken in; a person's answer takes effect at once", two(gates(level(LevelHuman)), nil))
	conform.Rule(t, "field asks 12", "pause at a step's boundary")
	s.do(PauseRequested{Run: s.run, By: ann})
	s.has(ignored(s.do(PauseRequested{Run: s.run, By: ann})), "paused already")
	s.done("a")
	s.want(s.gate("ga"), "1 human")
	s.says("ga", OutcomePass)
	s.want(s.step("a"), "1 passed", s.step("b"), "-")
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("b"), "1 running")
	s.has(ignored(s.do(ResumeRequested{Run: s.run, By: ann})), "not paused")
}

func TestRule29AgentTimeoutsRun(t *testing.T) {
	w := one(level(LevelHuman), func(g *Gate) { g.Timeout, g.OnTimeout = Duration(time.Hour), EndFailed })
	s := begin(t, "8-semantics 29", "in a pause agent time-outs run, human ones and max_duration do not", w)
	s.do(PauseRequested{Run: s.run})
	s.later(3 * time.Hour)
	s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "true")
	s = begin(t, "", "", w)
	s.done("a")
	s.later(30 * time.Minute)
	s.do(PauseRequested{Run: s.run})
	s.later(10 * time.Hour)
	s.want(s.r().Phase, RunRunning)
	s.do(ResumeRequested{Run: s.run})
	s.later(29 * time.Minute)
	s.want(s.r().Phase, RunRunning)
	s.later(2 * time.Minute)
	s.want(s.r().Phase, RunFailed)
}

func TestRule30Abort(t *testing.T) {
	conform.Rule(t, "field asks 12", "abort, and retry of an aborted run")
	conform.Rule(t, "004 §2 Task", "a run can end aborted")
	s := begin(t, "8-semantics 30", "abort ends the run in one fact, also a paused or pending one; only retry reopens", one())
	s.do(RunRequested{Workflow: "x", Digest: "d-x"})
	s.do(AbortRequested{Run: "x-2", By: ann})
	s.want(s.st.Runs["x-2"].Phase, RunAborted)
	s.do(PauseRequested{Run: "x-1"})
	s.do(AbortRequested{Run: "x-1", Why: "wrong branch", By: ann})
	s.want(s.r().Phase, RunAborted, s.r().EndWhy, "aborted by ann: wrong branch", fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "true")
	s.want(s.owed(DoNotify)[0].Notice.Text, "aborted by ann: wrong branch") // its title has the phase
	s.has(ignored(s.do(AbortRequested{Run: "x-1", By: ann})), "is over (aborted)")
	s.has(ignored(s.do(ResumeRequested{Run: "x-1", By: ann})), "is over")
	s.do(RetryRequested{Run: "x-1", By: ann})
	s.want(s.r().Phase, RunRunning, s.step("a"), "2 ready")
	s.do(ProcessEnded{Run: "x-1", Key: "x-1/a#1.1", Exit: Exit{Stopped: true}})
	s.writes()
	s.want(s.step("a"), "2 running")
}

func TestRule31Retry(t *testing.T) {
	conform.Rule(t, "field asks 12", "retry of a step")
	s := begin(t, "8-semantics 31", "retry RUN STEP supersedes STEP and downstream, resets their counts, keeps forced-human", two(gates(most(1)), gates(onFail("b"))))
	s.has(ignored(s.do(RetryRequested{Run: s.run, Step: "b", By: ann})), "has not been reached")
	s.has(ignored(s.do(RetryRequested{Run: s.run, Step: "z", By: ann})), "no step z")
	s.has(ignored(s.do(RetryRequested{Run: "y-1", By: ann})), "no run y-1")
	s.has(ignored(s.do(RetryRequested{Run: s.run, By: ann})), "say which step")
	s.done("a")
	s.judged("ga", OutcomeFail) // exhausted: forced
	s.says("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.writes()
	s.want(fmt.Sprint(s.r().Fails["ga"], s.r().Fails["gb"]), "1 1")
	s.do(RetryRequested{Run: s.run, Step: "a", By: ann})
	s.want(s.step("a"), "2 running", s.step("b"), "-", fmt.Sprint(s.r().Fails["ga"], s.r().Fails["gb"], s.r().Forced["ga"]), "0 0 true")
	s.has(ignored(s.do(RetryRequested{Run: s.run, Step: "b", By: ann})), "will run by itself")
	s.done("a")
	s.want(s.gate("ga"), "2 human")
}

func TestRule31RetryOfAnEndedRun(t *testing.T) {
	s := begin(t, "8-semantics 31", "retry RUN of an ended run: the step that ended it is sent back to itself; completed runs need STEP", two(nil, gates(route("stop", EndFailed))))
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", "stop")
	s.want(s.r().Phase, RunFailed)
	s.do(RetryRequested{Run: s.run, By: ann})
	s.writes()
	s.want(s.r().Phase, RunRunning, s.step("a"), "1 passed", s.step("b"), "2 running")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
	s.has(ignored(s.do(RetryRequested{Run: s.run, By: ann})), "completed: say which step")
	s.do(RetryRequested{Run: s.run, Step: "b", By: ann})
	s.writes()
	s.want(s.step("b"), "3 running")
}

// TestRule31RetryBesideAnother: a run reopened beside, or after, another one of the workflow leaves
// the other's retry context alone.
func TestRule31RetryBesideAnother(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(s *script) // what happens to the run after it
		want  string
	}{
		{"nothing ran since", nil, "ga-attempt-2.md"},
		{"beside a live one", func(*script) {}, "x-1/ga-attempt-2.md"},
		{"after another one", func(s *script) { s.do(AbortRequested{Run: "x-2", By: ann}) }, "x-1/ga-attempt-2.md"},
	} {
		s := begin(t, "8-semantics 31", "retry of an ended run: its retry context lies beside that of another run", one())
		s.done("a")
		s.judged("ga", OutcomeFail)
		s.writes()
		s.do(AbortRequested{Run: s.run, By: ann})
		s.do(ProcessEnded{Run: s.run, Key: "x-1/a#2.1", Exit: Exit{Stopped: true}})
		if c.other != nil {
			s.later(time.Minute)
			s.do(RunRequested{Workflow: "x", Digest: "d-x", By: ann})
			s.want(s.st.Runs["x-2"].Phase, RunRunning)
			c.other(s)
		}
		s.do(RetryRequested{Run: "x-1", Step: "a", By: ann})
		for _, w := range s.owed(DoWrite) {
			s.do(FileWritten{Run: w.Run, ID: w.Key})
		}
		if c.other != nil && s.st.Runs["x-2"].Live() { // it holds the worktree
			s.do(AbortRequested{Run: "x-2", By: ann})
			s.do(ProcessEnded{Run: "x-2", Key: "x-2/a#1.1", Exit: Exit{Stopped: true}})
		} else {
			s.do(ProcessEnded{Run: "x-2", Key: "x-2/a#1.1", Exit: Exit{Stopped: true}})
		}
		s.done("a")
		s.judged("ga", OutcomeFail)
		ws := s.owed(DoWrite)
		if len(ws) != 1 || ws[0].Write.Path != ".workflow/retry-context/"+c.want {
			t.Errorf("%s: %+v", c.name, ws)
		}
		s.restart(time.Minute)
		s.want(s.owed(DoWrite)[0].Write.Path, ".workflow/retry-context/"+c.want)
	}
}

func TestRule26OneRunAtATime(t *testing.T) {
	conform.Rule(t, "1-language rule 10", "a second run of a workflow waits")
	s := begin(t, "8-semantics 26", "one run of a workflow at a time; a second is pending, in start order, unless started in parallel", one())
	for range 2 {
		s.do(RunRequested{Workflow: "x", Digest: "d-x"})
	}
	phases := func(want string) {
		t.Helper()
		s.want(fmt.Sprint(s.st.Runs["x-1"].Phase, " ", s.st.Runs["x-2"].Phase, " ", s.st.Runs["x-3"].Phase), want)
	}
	phases("running pending pending")
	s.do(AbortRequested{Run: "x-1", By: ann})
	phases("aborted running pending")
	s.do(AbortRequested{Run: "x-2", By: ann})
	phases("aborted aborted running")
	s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true})
	s.want(s.st.Runs["x-4"].Phase, RunRunning)
}

func TestRule32MaxSteps(t *testing.T) {
	conform.Rule(t, "1-language limits", "max_steps, and on_hit")
	conform.Rule(t, "004 §5 question 3", "a circuit breaker of the run")
	for hit, phase := range map[string]string{"": RunAborted, EndFailed: RunFailed, EndAborted: RunAborted} {
		w := two(nil, nil)
		limits(func(l *Limits) { l.MaxSteps, l.OnHit["max_steps"] = 1, hit })(w)
		s := begin(t, "8-semantics 32", "max_steps is looked at before a start; on_hit "+hit, w)
		s.done("a")
		s.judged("ga", OutcomePass)
		s.want(s.r().Phase, phase, s.step("b"), "-")
		s.do(RetryRequested{Run: s.run, Step: "", By: ann})
		s.writes()
		s.want(s.r().Phase, RunRunning, s.step("b"), "1 running", fmt.Sprint(s.r().Allowance), "2")
		conform.Rule(t, "8-semantics 31", "retry grants one more allowance of the limit that was hit")
	}
	w := two(nil, nil)
	limits(func(l *Limits) { l.MaxSteps, l.OnHit["max_steps"] = 1, Human })(w)
	s := begin(t, "8-semantics 32", "on_hit human: paused with that reason; resume grants the same amount once more", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(fmt.Sprint(s.r().Paused, " ", s.r().PausedWhy), "true limit:max_steps", s.owed(DoNotify)[0].Notice.Kind, NoticePaused)
	s.do(ResumeRequested{Run: s.run, By: ann})
	s.want(s.step("b"), "1 running")
}

func TestRule32MaxDuration(t *testing.T) {
	conform.Rule(t, "1-language limits", "max_duration does not count a waiting human")
	w := two(gates(level(LevelHuman)), nil)
	limits(func(l *Limits) { l.MaxDuration = Duration(10 * time.Minute) })(w)
	s := begin(t, "8-semantics 32", "max_duration counts steps, reviews and windows, not pauses and not waiting for a person", w)
	s.later(4 * time.Minute)
	s.done("a")
	s.later(10 * time.Hour) // a person is asked
	s.want(s.r().Phase, RunRunning)
	s.do(PauseRequested{Run: s.run})
	s.says("ga", OutcomePass)
	s.later(10 * time.Hour)
	s.want(s.r().Phase, RunRunning)
	s.do(ResumeRequested{Run: s.run})
	s.later(5 * time.Minute)
	s.want(s.r().Phase, RunRunning)
	s.later(2 * time.Minute)
	s.want(s.r().Phase, RunAborted)
	s.want(s.r().EndLimit, "max_duration", s.r().EndWhy, "the limit max_duration is hit")
}

func TestRule32Usage(t *testing.T) {
	w := two(nil, nil)
	limits(func(l *Limits) { l.MaxTokens, l.OnHit["max_tokens"] = 1000, Human })(w)
	s := begin(t, "8-semantics 32", "max_tokens and max_cost_usd: what was used stops the next launch", w)
	conform.Rule(t, "field asks 7", "token and cost budget per run")
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{Usage: Usage{Tokens: 1200, CostUSD: 0.5}})
	s.want(fmt.Sprint(s.r().Paused, " ", s.r().PausedWhy), "true limit:max_tokens")
	s.do(ResumeRequested{Run: s.run})
	s.want(fmt.Sprint(s.r().Paused, s.r().UsageLimit.Tokens), "false 2000")
	s.checked()
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "1 running")
}

func extFlow() *Spec {
	a := aStep("a")
	a.ExtNeeds = []Need{{Workflow: "y", Step: "b"}}
	return flow("x", a, aGate("a", to(EndDone)))
}

func TestRule33NeedsAcrossWorkflows(t *testing.T) {
	conform.Rule(t, "004 §5 question 4", "needs: other/STEP, with its outputs looked at")
	conform.Rule(t, "1-language needs", "the newest run of the other workflow, pinned")
	y := flow("y", aStep("b"), aGate("b", to(EndDone), route("stop", EndFailed)))
	s := begin(t, "8-semantics 33", "the newest started run of that workflow must have the step passed; what satisfied it is pinned", extFlow(), y)
	conform.Rule(t, "field asks 13", "needs across workflows, judged on every event")
	s.want(s.r().Phase, RunRunning, s.step("a"), "-", fmt.Sprint(len(s.owed(DoLook))), "0")
	s.start("y")
	s.done("b")
	s.want(fmt.Sprint(len(s.owed(DoLook))), "0")
	s.judged("gb", OutcomePass)
	look := s.owed(DoLook)[0]
	s.run = "x-1"
	s.want(fmt.Sprint(look.Pins), "[y-1/b#1]", s.step("a"), "-")
	s.do(Looked{Run: "x-1", Step: "a", Pins: look.Pins})
	s.want(s.step("a"), "1 running", fmt.Sprint(s.r().Current("a").Pins), "[y-1/b#1]", fmt.Sprint(len(s.owed(DoLook))), "0")
	s.do(RetryRequested{Run: "y-1", Step: "b", By: ann}) // a later rewind there changes nothing here
	s.want(s.step("a"), "1 running")
}

func TestRule33FailedNeedIsTold(t *testing.T) {
	y := flow("y", aStep("b"), aGate("b", to(EndDone), route("stop", EndFailed)))
	s := begin(t, "8-semantics 33", "if that run failed or was aborted, it waits and a person is told, once", extFlow(), y)
	s.start("y")
	s.done("b")
	s.judged("gb", "stop")
	told := 0
	for _, e := range s.owed(DoNotify) {
		if e.Run == "x-1" {
			told++
			s.has(e.Notice.Text, "x-1 waits for y/b, but y-1 has failed")
		}
	}
	s.tell()
	s.later(time.Hour)
	s.want(fmt.Sprint(told), "1", s.st.Runs["x-1"].Phase, RunRunning, fmt.Sprint(len(s.owed(DoNotify))), "0")
	s.start("y")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(fmt.Sprint(s.owed(DoLook)[0].Pins), "[y-2/b#1]")
}

func TestRule33RunWaitsForNeeds(t *testing.T) {
	x := one()
	x.Needs = []Need{{Workflow: "y", Step: "b"}}
	s := begin(t, "1-language needs", "the run waits for its workflow's needs before its first step", x, flow("y", aStep("b"), aGate("b", to(EndDone))))
	s.want(s.r().Phase, RunPending)
	s.start("y")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.st.Runs["x-1"].Phase, RunRunning)
}
