package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

func as(n, k int) func(*FileSeen) {
	return func(f *FileSeen) { f.Sentinel.Attempt, f.Sentinel.Launch = n, k }
}

func inAll(f *FileSeen) { f.Dir = "" }

func TestRule27Signals(t *testing.T) {
	s := begin(t, "8-semantics 27", "n and k, where given, must be the live launch's; a bare one must be newer than that launch", one())
	s.exit("a", Exit{Signal: "killed"})
	s.later(time.Minute)
	s.want(s.r().Current("a").Key, "x-1/a#1.2")
	s.has(ignored(s.sentinel("a", StatusDone, as(2, 1))), "it belongs to attempt 2; live is a.1")
	s.has(ignored(s.sentinel("a", StatusDone, as(1, 1))), "it belongs to launch 1; live is launch 2")
	s.has(ignored(s.sentinel("a", StatusDone, func(f *FileSeen) { f.TokenOf = "x-1/a#1.1" })), "token is not that of the live attempt")
	s.has(ignored(s.sentinel("a", StatusDone, func(f *FileSeen) { f.TokenOf = "?" })), "token is not that")
	s.has(ignored(s.sentinel("a", StatusDone, func(f *FileSeen) { f.Written = f.Written.Add(-time.Hour) })), "written before attempt a.1 began")
	s.has(ignored(s.sentinel("a", StatusDone, func(f *FileSeen) { f.Sentinel.Run = "x-9" })), "it belongs to run x-9")
	s.has(ignored(s.sentinel("a", StatusDone, func(f *FileSeen) { f.Sentinel.Step = "b" })), "it says step")
	s.has(ignored(s.sentinel("a", "finished")), "want done, failed or blocked")
	s.want(s.step("a"), "1 running")
	s.want(ignored(s.sentinel("a", StatusDone, as(1, 2))), "", s.step("a"), "1 signalled")
	s.has(ignored(s.sentinel("a", StatusDone)), "has already reported")
	s = begin(t, "8-semantics 27", "where the clock was set back since the launch, a bare one counts", one())
	s.now = s.now.Add(-time.Hour)
	s.want(ignored(s.sentinel("a", StatusDone)), "", s.step("a"), "1 signalled")
}

func TestRule27EveryFileIsMoved(t *testing.T) {
	s := begin(t, "2-files taking 4", "a file taken in is moved to its attempt's folder, one refused to rejected/ with its reason, and told; nothing is lost", one())
	conform.Rule(t, "field asks early", "a signal that comes before anyone waits for it is kept or refused with its reason, never lost")
	s.sentinel("a", StatusDone, as(7, 7))
	m := s.owed(DoMove)[0].Move
	s.want(m.To, "", fmt.Sprint(m.Why != ""), "true", s.owed(DoNotify)[0].Notice.Kind, NoticeRejected)
	s.do(FileMoved{ID: m.ID})
	s.want(fmt.Sprint(len(s.owed(DoMove))), "0")
	s.sentinel("a", StatusDone)
	m = s.owed(DoMove)[0].Move
	s.want(m.Run, "x-1", m.To, "a.1", m.As, "signal.json")
	if facts := s.do(FileSeen{Name: "a-done.json", Dir: "x-1", ID: m.ID, Written: s.now, Sentinel: &Sentinel{}}); len(facts) != 0 {
		t.Errorf("seen again before it was moved: %+v", facts)
	}
	s.has(ignored(s.do(FileSeen{Name: "a-doen.json", ID: "t", Written: s.now, Sentinel: &Sentinel{}})), "did you mean a-done.json?")
	s.has(ignored(s.do(FileSeen{Name: "a-done.json", Dir: "y-1", ID: "u", Written: s.now, Sentinel: &Sentinel{}})), "no run y-1 is known")
	s.has(ignored(s.do(FileSeen{Name: "ga-pass", ID: "p", Place: "w-a", Written: s.now, Human: &HumanSay{}})), "not in a worktree's")
}

func TestRule27NamesOverRuns(t *testing.T) {
	s := begin(t, "8-semantics 27", "a bare signal counts only if exactly one live attempt of the repo goes by that name", one())
	s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true})
	s.writes()
	s.want(s.step("a"), "1 running", s.st.Runs["x-2"].Attempts["a"][0].State, Ready) // the same worktree
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.checked()
	s.judged("ga", OutcomePass)
	w := flow("y", aStep("a", tree("other")), aGate("a", to(EndDone)))
	s = begin(t, "", "", one(), w)
	s.start("y")
	s.run = "x-1"
	s.has(ignored(s.sentinel("a", StatusDone, inAll)), "2 live attempts have this name", "say which: signals/<run>/a-done.json")
	s.want(ignored(s.sentinel("a", StatusDone)), "", s.step("a"), "1 signalled")
	s.run = "y-1"
	s.want(ignored(s.sentinel("a", StatusDone, inAll)), "", s.step("a"), "1 signalled")
}

func TestRule27TakenInWhilePaused(t *testing.T) {
	s := begin(t, "8-semantics 27", "signals are taken in while paused", one())
	s.do(PauseRequested{Run: s.run})
	s.sentinel("a", StatusDone)
	s.want(s.step("a"), "1 signalled")
	s.exit("a", Exit{})
	s.checked()
	s.want(s.gate("ga"), "1 reviewing", fmt.Sprint(count[ReviewStarted](s.log)), "0")
	s.do(ResumeRequested{Run: s.run})
	s.want(fmt.Sprint(count[ReviewStarted](s.log)), "1")
}

func offeredFlow() *Spec {
	return flow("x", aStep("a", func(s *Step) { s.Agent.Launch = LaunchInteractive }, tree("w")), aGate("a", to(EndDone)), aStep("b", needs(), tree("w")), aGate("b", to(EndDone)))
}

func TestRule24Offers(t *testing.T) {
	s := begin(t, "8-semantics 24", "an offered attempt holds its worktree from the offer to its signal; no process is owed", offeredFlow())
	s.want(fmt.Sprint(s.owes(DoOffer, "x-1/a#1.1"), s.owes(DoRun, "x-1/a#1.1")), "true false", s.step("b"), "1 ready")
	s.do(Claimed{Run: s.run, Step: "a", N: 1, By: Actor{Who: "ann"}})
	s.has(ignored(s.do(Claimed{Run: s.run, Step: "a", N: 1, By: Actor{Who: "bob"}})), "taken by ann")
	s.has(ignored(s.do(Claimed{Run: s.run, Step: "a", N: 2, By: Actor{Who: "bob"}})), "not on offer")
	s.sentinel("a", StatusDone)
	s.checked()
	s.judged("ga", OutcomePass)
	s.want(s.step("a"), "1 passed", s.step("b"), "1 running")
}

func TestRule27OfferedSupersededUnanswered(t *testing.T) {
	s := begin(t, "8-semantics 27", "a bare signal does not count where an earlier offered attempt was superseded unanswered", offeredFlow())
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	s.want(s.r().Attempts["a"][0].State, Superseded)
	s.writes()
	for s.step("a") != "2 running" { // b has the worktree now
		s.done("b")
		s.judged("gb", OutcomePass)
	}
	s.has(ignored(s.sentinel("a", StatusDone)), "attempt a.1 was offered and superseded unanswered", `add "attempt": 2`)
	s.want(ignored(s.sentinel("a", StatusDone, as(2, 0))), "", s.step("a"), "2 signalled")
}

func TestRuleOfferTimesOut(t *testing.T) {
	w := one()
	w.Steps[0].Agent.Launch, w.Steps[0].Timeout = LaunchSubagent, Duration(time.Hour)
	s := begin(t, "1-language timeout", "an offered step nobody signals fails at its timeout", w)
	s.later(61 * time.Minute)
	s.checked()
	s.writes()
	s.want(s.step("a"), "2 running", s.r().Rounds["ga"][0].Feedback, "nobody signalled within the step's timeout")
}

func TestRule03Commits(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "a cherry-picked double and an amended twin do not fire again")
	w := one(most(9))
	w.Steps[0].Signal = Signal{Type: SignalCommit, Value: "[GATE:ga]"}
	s := begin(t, "1-language 3", "a commit with the marker is the step's word; a cherry-picked double and an amended twin do not fire it again", w)
	seen := func(n, k int, sha, author string) []Fact {
		return s.do(CommitSeen{Run: s.run, Step: "a", N: n, K: k, SHA: sha, Author: author, Subject: "x"})
	}
	s.want(fmt.Sprint(s.owes(DoWatch, "x-1/a#1.1")), "true")
	seen(1, 1, "aaaaaaaaaaaaaaaa", "ann 1")
	s.want(s.step("a"), "1 signalled", s.r().Current("a").Via, "commit aaaaaaaaaaaaaaaa", fmt.Sprint(s.owes(DoWatch, "x-1/a#1.1")), "false")
	s.exit("a", Exit{})
	s.checked()
	s.judged("ga", OutcomeFail)
	s.writes()
	seen(1, 1, "cccc", "ann 2") // of the attempt before
	s.want(s.step("a"), "2 running")
	s.has(ignored(seen(2, 1, "bbbbbbbbbbbbbbbb", "ann 1")), "commit bbbbbbbbbb is a copy of one that already counted for a.1")
	if facts := seen(2, 1, "bbbbbbbbbbbbbbbb", "ann 1"); len(facts) > 0 {
		t.Errorf("told twice: %+v", facts)
	}
	s.want(s.step("a"), "2 running")
	seen(2, 1, "dddd", "ann 3")
	s.want(s.step("a"), "2 signalled")
}

func TestRule03Pulls(t *testing.T) {
	conform.Rule(t, "1-language rule 3 pr_creation", "after exit 0 the grace is pr_poll")
	w := one()
	w.Steps[0].Signal = Signal{Type: SignalPull}
	s := begin(t, "1-language 3", "pr_creation: after exit 0 the grace is pr_poll; then the attempt failed, with that as the feedback", w)
	s.exit("a", Exit{})
	s.want(s.r().Current("a").GraceUntil.Sub(s.now).String(), "1m0s")
	s.do(PullSeen{Run: s.run, Step: "a", N: 1, K: 1, Ref: "refs/pull/7/head", SHA: "f00"})
	s.want(s.step("a"), "1 signalled", s.r().Current("a").Via, "refs/pull/7/head f00")
}

func TestRule03GraceOfACommit(t *testing.T) {
	w := one()
	w.Steps[0].Signal = Signal{Type: SignalCommit, Value: "[GATE:ga]"}
	s := begin(t, "1-language 3", "only a look at the refs begun after the grace says that the commit has not come", w)
	s.exit("a", Exit{})
	until := s.r().Current("a").GraceUntil
	s.now = until.Add(time.Minute)
	s.scan()
	s.do(Ticked{})
	s.do(Polled{Run: s.run, Step: "a", N: 1, K: 1, Began: until.Add(-time.Second)})
	s.want(s.step("a"), "1 running")
	s.do(Polled{Run: s.run, Step: "a", N: 1, K: 1, Began: until})
	s.want(s.r().Attempt("a", 1).Status, StatusFailed)
}

// TestRule03NoCommitAndWhy: an agent without a commit can explain itself in the answer; a commit in
// time counts.
func TestRule03NoCommitAndWhy(t *testing.T) {
	for _, c := range []struct{ signal, answer, status, gate, words string }{
		{SignalCommit, `{"status":"blocked","question":"which?","options":["a","b"]}`, StatusBlocked, "1 human", "which?"},
		{SignalPull, `{"status":"blocked","summary":"no remote"}`, StatusBlocked, "1 human", "no remote"},
		{SignalCommit, `{"status":"failed","summary":"no compiler"}`, StatusFailed, "-", "no compiler"},
		{SignalCommit, `{"status":"done"}`, StatusFailed, "-", "without its signal"},
	} {
		w := one()
		w.Steps[0].Signal = Signal{Type: c.signal, Value: "[GATE:ga]"}
		s := begin(t, "1-language 3", "an answer with status failed or blocked says so where no commit comes", w)
		s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(c.answer)})
		until := s.r().Current("a").GraceUntil
		s.now = until
		s.do(Polled{Run: s.run, Step: "a", N: 1, K: 1, Began: until})
		s.checked()
		q := s.r().Rounds["ga"][0]
		s.want(s.r().Attempt("a", 1).Status, c.status, s.gate("ga"), c.gate)
		s.has(q.Why+q.Feedback, c.words)
		s = begin(t, "", "", w)
		s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(c.answer)})
		if c.signal == SignalCommit {
			s.do(CommitSeen{Run: s.run, Step: "a", N: 1, K: 1, SHA: "abc", Author: "x"})
			s.want(s.r().Attempt("a", 1).Status, StatusDone)
		}
	}
}

func TestRule03ExitCodes(t *testing.T) {
	conform.Rule(t, "1-language rule 3 stdout_exit", "0 is done, another code failed, the end of the output the feedback")
	conform.Rule(t, "004 §2 Signal.stdout_exit", "exit 0 or another code")
	w := one()
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s := begin(t, "1-language 3", "stdout_exit: exit 0 is done; another code says failed, the end of its output the feedback", w)
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Exit: Exit{Code: 2}, Output: "make\nundefined: x"})
	s.checked()
	s.has(s.r().Rounds["ga"][0].Feedback, "exit code 2: “undefined: x”", "make")
	s.writes()
	s.exit("a", Exit{})
	s.checked()
	s.want(s.gate("ga"), "2 reviewing")
	s.judged("ga", OutcomeFail)
	s.writes()
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, AnswerBad: "no plan in it"})
	s.checked()
	s.has(s.r().CurrentRound("ga").Why+s.r().Rounds["ga"][2].Feedback, "no plan in it")
}

func TestRule03AnswerSaysFailedOrBlocked(t *testing.T) {
	w := one()
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s := begin(t, "1-language 3", "a top-level status of failed or blocked in the answer says what a sentinel's would", w)
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(`{"status":"blocked","question":"which?"}`)})
	s.checked()
	s.want(s.gate("ga"), "1 human")
	s.has(s.r().CurrentRound("ga").Why, "which?")
	s.start("x")
}

func TestRule03Grace(t *testing.T) {
	conform.Rule(t, "1-language rule 3 grace", "after grace the attempt failed, with that as the feedback")
	s := begin(t, "1-language 3", "exit 0 without its signal: after grace the attempt failed, with that as the feedback", one())
	conform.Rule(t, "field asks 8", "completion is the step's signal and its criterion, never the exit alone")
	s.exit("a", Exit{})
	s.want(s.step("a"), "1 running")
	s.later(4 * time.Second)
	s.scan()
	s.want(s.step("a"), "1 running")
	s.later(2 * time.Second)
	s.scan()
	s.checked()
	s.has(s.r().Rounds["ga"][0].Feedback, "exit code 0 and without its signal", "a-done.json")
	s = begin(t, "", "", one())
	s.exit("a", Exit{})
	s.sentinel("a", StatusDone)
	s.checked()
	s.want(s.gate("ga"), "1 reviewing")
}

func TestRule03Linger(t *testing.T) {
	conform.Rule(t, "1-language rule 3 linger", "after linger it is stopped; the signal holds")
	s := begin(t, "1-language 3", "it signals and stays: after linger its whole process tree is ended; the signal holds", one())
	conform.Rule(t, "field asks 3", "an agent that never exits after its result is ended after a grace")
	s.sentinel("a", StatusDone)
	s.later(29 * time.Second)
	s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "false")
	s.later(2 * time.Second)
	s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "true", s.step("a"), "1 signalled")
	s.exit("a", Exit{Stopped: true, Signal: "killed"})
	s.checked()
	s.want(s.gate("ga"), "1 reviewing")
}

func TestRuleTimeouts(t *testing.T) {
	conform.Rule(t, "1-language timeout", "a step's timeout ends the attempt")
	conform.Rule(t, "7-agents timeouts", "ended at its time-out")
	w := one()
	w.Steps[0].Timeout = Duration(10 * time.Minute)
	s := begin(t, "8-semantics 14", "a time-out is infrastructure: ended, tried again per restarts, then a person is asked", w)
	for range 2 {
		s.later(11 * time.Minute)
		s.want(fmt.Sprint(s.owes(DoStop, "x-1/a#1")), "true")
		s.exit("a", Exit{Stopped: true, Signal: "killed"})
		s.later(backoffFirst)
	}
	s.want(s.gate("ga"), "1 human", fmt.Sprint(s.r().Fails["ga"]), "0")
	s.has(s.r().CurrentRound("ga").Why, "it timed out")
}

func TestRule24HeldByProcesses(t *testing.T) {
	conform.Rule(t, "1-language rule 10", "a worktree is held by processes")
	w := flow("x", aStep("a", tree("w")), aGate("a", to(EndDone)), aStep("b", needs(), tree("w")), aGate("b", to(EndDone)))
	s := begin(t, "8-semantics 24", "a worktree is held by processes, not states: until the tree is seen gone, and without gap to the verdict", w)
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready")
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	s.want(s.step("a"), "2 ready", s.step("b"), "1 ready", fmt.Sprint(s.owes(DoStop, "x-1/a#1.1")), "true")
	s.do(ProcessEnded{Run: s.run, Key: "x-1/a#1.1", Exit: Exit{Stopped: true}})
	s.want(s.step("b"), "1 running", s.step("a"), "2 ready") // b waited longer
	s.sentinel("b", StatusDone)
	s.exit("b", Exit{})
	s.want(s.step("a"), "2 ready", s.owed(DoRun)[0].Proc.Kind, ProcCheck)
	s.checked()
	s.want(s.step("a"), "2 ready", s.owed(DoRun)[0].Proc.Kind, ProcReview)
	s.judged("gb", OutcomePass)
	s.want(s.step("a"), "2 running")
}

func TestRule25OldestFirst(t *testing.T) {
	conform.Rule(t, "1-language rule 10", "oldest first, up to max_parallel")
	w := flow("x", aStep("a", tree("w")), aGate("a", to(EndDone)), aStep("b", needs(), tree("w")), aGate("b", to(EndDone)), aStep("c", needs(), tree("v")), aGate("c", to(EndDone)))
	s := begin(t, "8-semantics 25", "ready work starts oldest first; who waits for a worktree does not hold up others; slots are of steps and reviewers only", w)
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready", s.step("c"), "1 running")
	c := s.st.Config
	c.MaxParallel = 1
	s.do(Configured{Config: c})
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.want(s.owed(DoRun)[1].Proc.Kind, ProcCheck) // a check takes no slot
	s.checked()
	s.want(fmt.Sprint(s.r().CurrentRound("ga").K), "0") // the one slot is c's
	s.done("c")
	s.want(fmt.Sprint(s.r().CurrentRound("ga").K, s.r().CurrentRound("gc").K), "1 0")
}

func TestRule25NotOvertakenInItsOwnWorktree(t *testing.T) {
	offer := func(s *Step) { s.Agent.Launch = LaunchSubagent }
	w := flow("x", aStep("a", tree("v")), aGate("a", to(EndDone)), aStep("b", needs(), tree("w")), aGate("b", to(EndDone)), aStep("c", needs(), tree("w"), offer), aGate("c", to(EndDone)))
	s := &script{world: newWorld(t, w)}
	conform.Rule(t, "8-semantics 25", "who waits for a slot is not overtaken in its own worktree, also not by an offer, which takes no slot")
	c := s.st.Config
	c.MaxParallel = 1
	s.do(Configured{Config: c})
	s.start("x")
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready", s.step("c"), "1 ready")
	s.done("a") // the slot is b's while a is checked
	s.want(s.step("b"), "1 running", s.step("c"), "1 ready")
	s.done("b")
	s.want(s.gate("ga"), "1 reviewing", s.step("c"), "1 ready")
	s.judged("ga", OutcomePass)
	s.judged("gb", OutcomePass)
	s.want(s.step("c"), "1 running")
}

func TestRuleHooks(t *testing.T) {
	w := one()
	w.AfterStep, w.AfterRun = &Command{Shell: "make fmt"}, &Command{Shell: "true"}
	s := begin(t, "1-language hooks", "after_step runs between word and gate, once an attempt; after_run when all processes are gone; a failing hook is recorded, not fatal", w)
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	for s.step("a") == "1 signalled" { // check and hook, one after the other, and the gate after both
		es := s.owed(DoRun)
		s.want(fmt.Sprint(len(es)), "1", s.gate("ga"), "-")
		ev := ProcessEnded{Run: s.run, Key: es[0].Key, Exit: Exit{Code: 1}}
		if es[0].Proc.Kind == ProcCheck {
			ev.Exit, ev.Check = Exit{}, &CheckResult{OK: true, Digest: "t"}
		}
		s.do(ev)
	}
	s.want(s.gate("ga"), "1 reviewing", fmt.Sprint(count[HookStarted](s.log), count[CheckStarted](s.log)), "1 1")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted, s.owed(DoRun)[0].Proc.Kind, ProcHook)
	s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Exit: Exit{Code: 1}})
	s.want(fmt.Sprint(len(s.owed(DoRun)), count[HookStarted](s.log)), "0 2", s.r().Phase, RunCompleted)
}

func TestRule07RetryContextFirst(t *testing.T) {
	s := begin(t, "1-language 7", "the feedback is written to retry_context_path, then the work goes", one())
	conform.Rule(t, "field asks 15", "a retry carries the feedback")
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.want(s.step("a"), "2 ready", s.owed(DoWrite)[0].Write.Path, ".workflow/retry-context/ga-attempt-1.md")
	s.restart(time.Minute)
	s.later(time.Hour)
	s.want(s.step("a"), "2 ready")
	s.do(FileWritten{Run: s.run, ID: s.owed(DoWrite)[0].Key})
	s.want(s.step("a"), "2 running")
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.checked()
	s.judged("ga", OutcomeFail)
	s.do(FileWritten{Run: s.run, ID: s.owed(DoWrite)[0].Key, Why: "read-only file system"})
	s.want(s.step("a"), "3 running", s.owed(DoNotify)[0].Notice.Text, "read-only file system")
}

// TestHooksNotify: with notify a person is told once of each gate that fails and each step that
// passes; otherwise not.
func TestHooksNotify(t *testing.T) {
	told := func(notify bool) (texts []string) {
		w := one()
		w.Notify = notify
		s := begin(t, "1-language hooks", "notify tells of each step that passes and of what a gate does not pass", w)
		s.done("a")
		s.judged("ga", OutcomeFail)
		s.do(FileWritten{Run: s.run, ID: s.owed(DoWrite)[0].Key})
		s.done("a")
		s.judged("ga", OutcomePass)
		for _, e := range s.owed(DoNotify) {
			texts = append(texts, e.Notice.Kind+" "+e.Notice.Text)
		}
		return texts
	}
	if got := strings.Join(told(true), "|"); len(told(true)) != 3 || !strings.Contains(got, ": fail → a. fail of ga") || !strings.Contains(got, "info a has passed") {
		t.Errorf("told: %s", got)
	}
	if got := told(false); len(got) != 1 {
		t.Errorf("told unasked: %q", got)
	}
}
