package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

// window takes a notify gate to its open veto window.
func window(t *testing.T, rule, sentence string, more ...func(*Gate)) *script {
	t.Helper()
	s := begin(t, rule, sentence, two(append(gates(level(LevelNotify)), more...), nil))
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.gate("ga"), "1 notice")
	s.tell()
	s.want(s.gate("ga"), "1 window", s.step("b"), "-")
	return s
}

func TestRule20Window(t *testing.T) {
	conform.Rule(t, "004 §2 Reviewer.notify", "the work waits for the window")
	conform.Rule(t, "004 §6 experiment 5.notify", "the pipeline pauses briefly")
	s := window(t, "8-semantics 20", "the window opens when the notice was attempted and closes at the first scan begun at or after its deadline")
	s.want(s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "30s")
	s.later(29 * time.Second)
	s.scan()
	s.want(s.gate("ga"), "1 window")
	s.later(2 * time.Second)
	s.want(s.gate("ga"), "1 window") // the clock alone closes nothing
	s.do(Scanned{Began: s.r().CurrentRound("ga").WindowEnds.Add(-time.Second)})
	s.want(s.gate("ga"), "1 window")
	s.scan()
	s.want(s.gate("ga"), "1 passed", s.step("b"), "1 running", s.r().Rounds["ga"][0].ByKind, "window")
}

func TestRule20VetoInTheClosingScanWins(t *testing.T) {
	conform.Rule(t, "1-language rule 5", "a veto in the closing scan wins")
	s := window(t, "8-semantics 20", "a veto whole in the scan that closes the window wins")
	s.later(31 * time.Second)
	began := s.now
	s.do(FileSeen{Name: "ga-veto", ID: "v", Written: s.now, Human: &HumanSay{Text: "not this"}, By: Actor{Who: "ann", Via: "file"}})
	s.do(Scanned{Began: began})
	s.want(s.gate("ga"), "-", s.step("a"), "2 ready", s.r().Rounds["ga"][0].Feedback, "not this")
	conform.Rule(t, "field asks timers", "a timer of a gate already answered never fires")
	s.scan()
	s.later(time.Hour)
	s.scan()
	s.want(fmt.Sprint(len(s.r().Attempts["b"])), "0")
}

func TestRule20WindowStandsInAPause(t *testing.T) {
	s := window(t, "8-semantics 20", "the window does not run while the run is paused: what is left of it is kept")
	s.later(10 * time.Second)
	s.do(PauseRequested{Run: s.run})
	s.later(time.Hour)
	s.scan()
	s.want(s.gate("ga"), "1 window")
	s.do(ResumeRequested{Run: s.run})
	s.want(s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "20s")
	s.later(21 * time.Second)
	s.scan()
	s.want(s.gate("ga"), "1 passed")
}

func TestRule20NoticeInAPause(t *testing.T) {
	s := begin(t, "8-semantics 29", "a notice attempted in a pause opens its window at the resume", two(gates(level(LevelNotify)), nil))
	s.done("a")
	s.do(PauseRequested{Run: s.run})
	s.judged("ga", OutcomePass)
	s.tell()
	s.want(s.gate("ga"), "1 notice")
	s.later(time.Hour)
	s.scan()
	s.do(ResumeRequested{Run: s.run})
	s.want(s.gate("ga"), "1 window", s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "30s")
}

func TestRule21LateVeto(t *testing.T) {
	conform.Rule(t, "1-language rule 5", "a late veto rewinds")
	conform.Rule(t, "004 §2 Reviewer.notify", "a human can veto, also late")
	s := window(t, "8-semantics 21", "a late veto on a passed round that stands rewinds: what ran after the gate is stopped and superseded")
	s.later(31 * time.Second)
	s.scan()
	s.want(s.step("b"), "1 running")
	s.want(s.says("ga", OutcomeVeto), "")
	s.want(s.step("a"), "2 ready", s.step("b"), "-", fmt.Sprint(s.owes(DoStop, "x-1/b#1.1")), "true", s.r().Rounds["ga"][0].ByKind, "human", fmt.Sprint(s.r().Rounds["ga"][0].Veto), "true")
	s.has(s.says("ga", OutcomeVeto), "asks nothing now")
}

func TestRule21OverIsOver(t *testing.T) {
	s := begin(t, "8-semantics 21", "a veto on an ended run is ignored and told what would take it up again", one())
	s.done("a")
	s.judged("ga", OutcomePass)
	s.has(s.says("ga", OutcomeVeto), "run x-1 is over (completed)", "sluice retry x-1 STEP")
	s.has(ignored(s.do(FileSeen{Name: "ga-veto", Dir: "x-1", ID: "v", Written: s.now, Human: &HumanSay{}})), "is over", "sluice retry")
}

func TestRule21PassOnlyWhereAsked(t *testing.T) {
	conform.Rule(t, "8-semantics I4", "nobody passes what does not ask a person")
	s := begin(t, "8-semantics 21", "a person's pass counts only where a person is asked; a fail on an open round of any level is a failure at once", one())
	s.done("a")
	s.has(s.says("ga", OutcomePass), "does not ask a person", "under review")
	s.want(s.gate("ga"), "1 reviewing")
	s.want(s.says("ga", OutcomeFail), "")
	s.want(s.step("a"), "2 ready", fmt.Sprint(s.owes(DoStop, "x-1/ga#1.1")), "true")
}

func TestRule22WhichRound(t *testing.T) {
	conform.Rule(t, "4-trust bound", "bound to its round")
	s := begin(t, "8-semantics 22", "an answer names its round, or is bare and newer than the round's opening", one(level(LevelHuman), most(9)))
	conform.Rule(t, "field asks answers", "an answer to an old attempt never counts for a new one")
	s.done("a")
	early := s.now.Add(-time.Minute)
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Written = early }), "before round 1 of ga opened")
	s.now = s.now.Add(-time.Hour)
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Written = s.now }), "clock was set back since round 1 of ga opened", "name the round")
	s.now = s.now.Add(time.Hour)
	ahead := s.now.Add(time.Minute) // written before the clock was set back
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Written = ahead }), "in the future", "name the round")
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Round = 2 }), "is at round 1, not 2")
	s.says("ga", OutcomeFail)
	s.done("a")
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Round = 1 }), "is at round 2, not 1")
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.Round, a.Written = 2, early }), "")
	s.want(s.r().Phase, RunCompleted)
}

func TestRule22SecondAnswerIsToldWhoWasFirst(t *testing.T) {
	s := begin(t, "2-files decision", "of two answers the first recorded counts; the second is told who was first", two(gates(level(LevelHuman)), nil))
	conform.Rule(t, "field asks record", "who answered, when and how is on the record")
	s.done("a")
	s.want(s.says("ga", OutcomePass), "")
	s.has(s.says("ga", OutcomeFail, func(a *Answered) { a.By.Who = "bob" }), "decided already",
		"pass by ann (command) at "+s.r().Rounds["ga"][0].Ended.UTC().Format("2006-01-02 15:04:05Z"))
	q := s.r().Rounds["ga"][0]
	s.want(q.By.Who, "ann", q.By.Via, "command", q.ByKind, "human", fmt.Sprint(q.Ended.IsZero()), "false")
}

func TestRule22TwoRunsWaitAtOneGate(t *testing.T) {
	s := begin(t, "2-files decision", "where several runs wait at a gate of the name, an answer says which", one(level(LevelHuman)))
	s.done("a")
	first := s.run
	s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true})
	s.run = "x-2"
	s.do(AbortRequested{Run: "x-1"})
	s.do(RetryRequested{Run: "x-1", Step: "a"})
	s.writes()
	for _, id := range []string{"x-1", "x-2"} {
		s.run = id
		s.done("a")
	}
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.Run = "" }), "2 runs wait at gate ga", "say which")
	s.has(ignored(s.do(FileSeen{Name: "ga-pass", ID: "p", Written: s.now, Human: &HumanSay{}})), "say which")
	s.run = first
	s.want(s.says("ga", OutcomePass), "", s.r().Phase, RunCompleted)
}

func TestRule23ChangedContent(t *testing.T) {
	conform.Rule(t, "4-trust bound", "void when what was reviewed has changed")
	s := begin(t, "8-semantics 23", "content changed before the answer takes effect: the answer is void, the round superseded, round n+1 opens with the checks anew", one(level(LevelHuman)))
	conform.Rule(t, "field asks 10", "approval of old content is void")
	s.done("a")
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.DigestNow = "other" }), "")
	s.want(s.r().Rounds["ga"][0].State, Undone, s.step("a"), "1 signalled", fmt.Sprint(count[RoundVoided](s.log)), "1")
	s.checked()
	s.want(s.gate("ga"), "2 human", s.step("a"), "1 gating")
	s.want(s.says("ga", OutcomePass), "", s.r().Phase, RunCompleted)

	// a route lets work go on too
	s = begin(t, "", "", two(gates(level(LevelHuman), route("on", "b")), nil))
	s.done("a")
	s.want(s.says("ga", "on", func(a *Answered) { a.DigestNow = "other" }), "")
	s.want(s.r().Rounds["ga"][0].State, Undone, s.step("b"), "-")
	s.checked()
	s.want(s.says("ga", "on"), "", s.step("b"), "1 running")
}

func TestRule13Trust(t *testing.T) {
	w := one(level(LevelHuman))
	w.Gates[0].Reviewer.Trust = TrustSandbox
	s := begin(t, "4-trust level", "an answer of a lower level of trust than the gate's does not count, and is told so", w)
	s.done("a")
	s.has(s.says("ga", OutcomePass), "trust level sandbox", "this one has file")
	// an unknown level counts for nothing
	s.has(s.says("ga", OutcomePass, func(a *Answered) { a.By.Trust = "best" }), "this one has best")
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.By.Trust = TrustSandbox }), "", s.r().Phase, RunCompleted)
}

func TestRule35StricterTrustStays(t *testing.T) {
	s := begin(t, "8-semantics 35", "a round keeps the veto_window it opened with and the stricter of old and new trust", two(gates(level(LevelNotify)), nil))
	c := s.st.Config
	c.VetoWindow, c.Trust = Duration(time.Minute), TrustSandbox
	s.do(Configured{Config: c})
	s.done("a")
	s.want(s.r().CurrentRound("ga").Trust, TrustSandbox)
	c.VetoWindow, c.Trust = Duration(time.Second), TrustFile
	s.do(Configured{Config: c})
	s.judged("ga", OutcomePass)
	s.tell()
	s.want(s.r().CurrentRound("ga").WindowEnds.Sub(s.now).String(), "1m0s", s.r().CurrentRound("ga").Trust, TrustSandbox)
	s.has(s.says("ga", OutcomeVeto), "trust level sandbox")
}

func TestRule35StricterNewTrustCounts(t *testing.T) {
	s := begin(t, "8-semantics 35", "settings that become stricter hold for a round that is open already", one(level(LevelHuman)))
	s.done("a")
	c := s.st.Config
	c.Trust = TrustSandbox
	s.do(Configured{Config: c})
	s.has(s.says("ga", OutcomePass), "trust level sandbox")
}

func TestRule21HumanRoute(t *testing.T) {
	w := two(gates(level(LevelHuman), route("replan", "a"), route("stop", EndDone)), nil)
	s := begin(t, "1-language 5", "a person says pass, fail or a route's name", w)
	s.done("a")
	s.has(s.says("ga", "aprove"), "no outcome", "pass, fail, veto, replan, stop")
	s.want(s.says("ga", "replan"), "", s.step("a"), "2 running", fmt.Sprint(s.r().Fails["ga"], s.r().Routes["ga"]), "0 map[replan:1]")
	s.done("a")
	s.want(s.says("ga", "stop"), "", s.r().Phase, RunCompleted)
}

func TestRule05WaitingHoldsNothing(t *testing.T) {
	conform.Rule(t, "8-semantics 24", "waiting for a human holds nothing")
	conform.Rule(t, "004 §6 experiment 5.rest", "other branches go on")
	w := flow("x", aStep("a", tree("w")), aGate("a", to(EndDone), level(LevelHuman)), aStep("b", needs(), tree("w")), aGate("b", to(EndDone)))
	s := begin(t, "1-language 5", "a blocked gate holds no worktree and no slot: it blocks only what is downstream of it", w)
	conform.Rule(t, "field asks waiting", "a waiting gate holds no worktree, slot or branch")
	c := s.st.Config
	c.MaxParallel = 1
	s.do(Configured{Config: c})
	s.want(s.step("a"), "1 running", s.step("b"), "1 ready")
	s.done("a")
	s.want(s.gate("ga"), "1 human", s.step("b"), "1 running", fmt.Sprint(len(s.r().Procs)), "1")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.r().Phase, RunRunning)
	s.says("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

func TestRuleHumanTimeouts(t *testing.T) {
	conform.Rule(t, "1-language on_timeout", "remind, fail or an end; never pass")
	due := func(action string) func(*Gate) {
		return func(g *Gate) { g.Timeout, g.OnTimeout = Duration(24*time.Hour), action }
	}
	for action, want := range map[string]string{EndFailed: RunFailed, EndAborted: RunAborted} {
		s := begin(t, "1-language timeout", "on_timeout: "+action, one(level(LevelHuman), due(action)))
		s.done("a")
		s.later(23 * time.Hour)
		s.want(s.gate("ga"), "1 human")
		s.later(2 * time.Hour)
		s.want(s.r().Phase, want)
	}
	s := begin(t, "1-language timeout", "on_timeout: fail goes back, and counts", one(level(LevelHuman), due(OutcomeFail)))
	s.done("a")
	s.later(25 * time.Hour)
	s.want(s.step("a"), "2 ready", s.r().Rounds["ga"][0].ByKind, "timeout", fmt.Sprint(s.r().Fails["ga"]), "1")
	s = begin(t, "1-language timeout", "on_timeout: remind is the default; it never passes", one(level(LevelHuman), due("")))
	s.done("a")
	s.later(49 * time.Hour)
	s.want(s.gate("ga"), "1 human")
	if q := s.r().CurrentRound("ga"); q.Reminders < 2 || !q.Due.After(s.now) {
		t.Errorf("reminded %d times, next due %s, now %s", q.Reminders, q.Due, s.now)
	}
}

func TestRuleReminders(t *testing.T) {
	s := begin(t, "field asks 5", "reminders of what waits for a person, growing apart", one(level(LevelHuman)))
	s.done("a")
	s.tell()
	s.later(59 * time.Minute)
	s.want(fmt.Sprint(s.r().CurrentRound("ga").Reminders), "0")
	s.later(2 * time.Minute)
	s.want(fmt.Sprint(s.r().CurrentRound("ga").Reminders), "1", s.owed(DoNotify)[0].Notice.Kind, NoticeReminder)
	s.later(time.Hour)
	s.want(fmt.Sprint(s.r().CurrentRound("ga").Reminders), "1")
	s.says("ga", OutcomePass)
	s.tell()
	s.later(100 * time.Hour)
	s.want(fmt.Sprint(len(s.owed(DoNotify))), "0")
}

func TestRule21WordsOfAPass(t *testing.T) {
	conform.Rule(t, "2-files decision words", "the words of a pass reach what comes next, as gates.G.feedback")
	heard := func(s *script) string { return s.st.env(s.r(), s.specs["d-x"]).Gates["ga"].Feedback }
	s := begin(t, "8-semantics 21", "what a person says with a pass is the gate's feedback; a pass without words leaves the reviewer's", two(gates(level(LevelHuman)), nil))
	s.done("a")
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.Text = "mind the log level" }), "")
	s.done("b")
	s.want(heard(s), "mind the log level")
	s.replayed()
	s.want(heard(s), "mind the log level")

	s = begin(t, "", "", two(gates(level(LevelHuman)), nil)) // a veto without words does not repeat what the pass said
	s.done("a")
	s.says("ga", OutcomePass, func(a *Answered) { a.Text = "good" })
	s.says("ga", OutcomeVeto, func(a *Answered) { a.Text = "" })
	s.want(s.r().Rounds["ga"][0].Feedback, "")

	w := two(append(gates(), route("unsure", Human)), nil)
	s = begin(t, "", "", w)
	s.done("a")
	s.judged("ga", "unsure")
	s.want(s.says("ga", OutcomePass, func(a *Answered) { a.Text = "" }), "")
	s.done("b")
	s.want(heard(s), "unsure of ga")

	w = two(gates(), nil)
	w.Gates[0].When = Cond{Source: "false", Eval: func(*Env) (bool, error) { return false, nil }}
	s = begin(t, "", "", w)
	s.done("a", "b")
	s.want(s.r().Rounds["ga"][0].ByKind, "when", heard(s), "")
}

// TestWhatWasSaidBefore: a person's words do not erase earlier ones: the retry context has both.
func TestWhatWasSaidBefore(t *testing.T) {
	conform.Rule(t, "13-law 004 history", `"Multiple retry rounds accumulate context files. The agent sees the full failure history": the round keeps what its reviewer said when a person decides`)
	say := func(words string) func(*Answered) { return func(a *Answered) { a.Text = words } }
	type round struct{ said, feedback string }
	for name, c := range map[string]struct {
		spec []func(*Gate)
		do   func(s *script)
		want round
	}{
		"exhausted":        {append(gates(), most(1)), func(s *script) { s.judged("ga", OutcomeFail); s.says("ga", OutcomeFail, say("mine")) }, round{"fail of ga", "mine"}},
		"without words":    {append(gates(), most(1)), func(s *script) { s.judged("ga", OutcomeFail); s.says("ga", OutcomeFail, say("")) }, round{"fail of ga", "fail of ga"}},
		"the same words":   {append(gates(), most(1)), func(s *script) { s.judged("ga", OutcomeFail); s.says("ga", OutcomeFail, say("fail of ga")) }, round{"fail of ga", "fail of ga"}},
		"escalated":        {append(gates(), route("unsure", Human)), func(s *script) { s.judged("ga", "unsure"); s.says("ga", OutcomeFail, say("mine")) }, round{"unsure of ga", "mine"}},
		"by a route":       {append(gates(), route("unsure", Human), route("again", "a")), func(s *script) { s.judged("ga", "unsure"); s.says("ga", "again", say("mine")) }, round{"unsure of ga", "mine"}},
		"no reviewer":      {gates(level(LevelHuman)), func(s *script) { s.says("ga", OutcomeFail, say("mine")) }, round{"", "mine"}},
		"veto of a pass":   {gates(level(LevelNotify)), func(s *script) { s.judged("ga", OutcomePass); s.says("ga", OutcomeVeto, say("mine")) }, round{"", "mine"}},
		"late veto":        {gates(), func(s *script) { s.judged("ga", OutcomePass); s.says("ga", OutcomeVeto, say("mine")) }, round{"", "mine"}},
		"reviewer by self": {gates(), func(s *script) { s.judged("ga", OutcomeFail) }, round{"", "fail of ga"}},
	} {
		s := begin(t, "", "", two(c.spec, nil))
		s.done("a")
		c.do(s)
		q := s.r().Rounds["ga"][0]
		if got := (round{q.Said, q.Feedback}); got != c.want {
			t.Errorf("%s: %+v in state %s, want %+v", name, got, q.State, c.want)
		}
		s.replayed()
	}
}

// TestRule21LateVetoOfARoutedStep: a step's first gate has passed, the second has sent the work
// elsewhere.
func TestRule21LateVetoOfARoutedStep(t *testing.T) {
	second := aGate("a", to("b"), route("away", "c"))
	second.ID = "ga2"
	first := aGate("a", nil, onFail("d"))
	first.NextGate = "ga2"
	w := flow("x", aStep("a", func(s *Step) { s.Gates = []string{"ga", "ga2"} }), first, second, aStep("b"), aGate("b", to(EndDone)), aStep("c"), aGate("c", to(EndDone)), aStep("d"), aGate("d", to(EndDone)))
	s := begin(t, "8-semantics 21", "a late veto counts on a passed round of a step that a later gate has sent elsewhere", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.judged("ga2", "away")
	s.want(s.step("a"), "1 routed", s.step("c"), "1 running")
	s.want(s.says("ga", OutcomeVeto), "", s.step("a"), "1 routed", s.step("c"), "-")
	s.stopped()
	s.writes()
	s.want(s.step("d"), "1 running")
	s.replayed()
}
