package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice/tools/conform"
)

func TestRule17Reset(t *testing.T) {
	s := begin(t, "8-semantics 17", "sending back sets to 0 the counts of gates strictly upstream that have to be passed again; nothing else does", two(gates(most(3)), gates(onFail("a"), most(3))))
	counts := func(want string) { t.Helper(); s.want(fmt.Sprint(s.r().Fails["ga"], s.r().Fails["gb"]), want) }
	s.done("a")
	s.judged("ga", OutcomeFail)
	counts("1 0")
	s.done("a")
	s.judged("ga", OutcomePass)
	counts("1 0")
	s.done("b")
	s.judged("gb", OutcomeFail)
	counts("0 1")
	s.done("a")
	s.judged("ga", OutcomeFail)
	counts("1 1")
}

func TestRule18Exhausted(t *testing.T) {
	conform.Rule(t, "1-language rule 8", "from count m on none goes by itself; human for the rest of the run")
	conform.Rule(t, "004 §2 Gate.max_retries", "at max_retries failures a human is asked")
	conform.Rule(t, "004 §2 Retry.escalation", "an auto gate is human after max_retries failures")
	conform.Rule(t, "004 §5 question 3", "max_retries per gate")
	s := begin(t, "8-semantics 18", "at count m this failure is asked and the gate is human for the rest of the run; a person's own fail routes", one(most(2)))
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.want(s.gate("ga"), "2 human", s.step("a"), "2 gating")
	s.has(s.r().CurrentRound("ga").Why, "it failed 2 times: ")
	s.says("ga", OutcomeFail)
	s.want(s.step("a"), "3 ready", fmt.Sprint(len(s.owed(DoWrite))), "1")
	s.done("a")
	s.want(s.gate("ga"), "3 human")
	s.says("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

func TestRule18ResetsDoNotLiftForced(t *testing.T) {
	s := begin(t, "8-semantics 18", "resets do not lift forced human", two(gates(most(1)), gates(onFail("a"))))
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.says("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.want(fmt.Sprint(s.r().Fails["ga"]), "0")
	s.done("a")
	s.want(s.gate("ga"), "2 human")
}

func TestRule18OnExhausted(t *testing.T) {
	conform.Rule(t, "1-language rule 8", "on_exhausted replaces this")
	for exh, want := range map[string]string{OutcomePass: RunCompleted, EndFailed: RunFailed, EndAborted: RunAborted, EndDone: RunCompleted} {
		s := begin(t, "8-semantics 18", "on_exhausted: "+exh, one(most(1), exhausted(exh)))
		s.done("a")
		s.judged("ga", OutcomeFail)
		s.want(s.r().Phase, want)
	}
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), most(2), exhausted("a")))
	s := begin(t, "8-semantics 18", "on_exhausted to a step: once; when it has passed the counts start at 0; the next exhaustion asks a person", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.want(s.step("a"), "2 ready", fmt.Sprint(s.r().Fails["gb"]), "2")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "3 running", fmt.Sprint(s.r().Fails["gb"]), "0")
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.want(s.gate("gb"), "4 human")
}

func TestRule18HumanLevelHasNoWayRound(t *testing.T) {
	s := begin(t, "8-semantics 5", "at a round that became a person's, on_exhausted that goes on is read as human", one(level(LevelHuman), most(1), exhausted(OutcomePass)))
	s.sentinel("a", StatusFailed)
	s.exit("a", Exit{})
	s.checked()
	s.want(s.gate("ga"), "1 human")
}

func TestRule18ExhaustedInVerdict(t *testing.T) {
	var seen []bool
	w := one(most(2))
	w.Gates[0].Verdict = Verdict{Rules: []Rule{{Outcome: "revise", When: Cond{Eval: func(e *Env) (bool, error) { seen = append(seen, e.Exhausted); return true, nil }}}}}
	s := begin(t, "8-semantics 18", "in verdict, exhausted is true when a failure of this round would exhaust the gate", w)
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.done("a")
	s.judged("ga", OutcomeFail)
	if fmt.Sprint(seen) != "[false true]" {
		t.Errorf("exhausted was %v", seen)
	}
}

func TestRule18SameFailure(t *testing.T) {
	conform.Rule(t, "1-language same_failure", "three times over an unchanged tree: a person is asked")
	conform.Rule(t, "field asks 14", "no progress asks a person")
	conform.Rule(t, "004 §5 question 3", "a breaker beside max_retries")
	s := begin(t, "1-language limits", "max_same_failure: the same failure over an unchanged tree asks a person at this round", one(most(10)))
	same := func() {
		s.writes()
		s.sentinel("a", StatusDone)
		s.exit("a", Exit{})
		s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{OK: true, Digest: "same"}})
		s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Verdict: &Judgement{Outcome: OutcomeFail, Feedback: fmt.Sprintf("test at %d: no", len(s.log))}})
	}
	same()
	same()
	s.want(s.step("a"), "3 ready")
	same()
	s.want(s.gate("ga"), "3 human")
	s.has(s.r().CurrentRound("ga").Why, "no progress")
	s.says("ga", OutcomeFail)
	s.done("a")
	s.want(s.gate("ga"), "4 reviewing")
}

func TestRule19Inconclusive(t *testing.T) {
	conform.Rule(t, "1-language rule 6", "inconclusive: tried again, then a human")
	s := begin(t, "8-semantics 19", "inconclusive: one more launch per restarts, then this round only is a person's", one(most(2)))
	s.done("a")
	miss := func() {
		s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Exit: Exit{Signal: "segv"}, Verdict: &Judgement{Outcome: OutcomePass}})
	}
	miss()
	s.want(s.gate("ga"), "1 reviewing")
	s.later(backoffFirst)
	miss()
	s.want(s.gate("ga"), "1 human")
	s.says("ga", OutcomeFail)
	s.done("a")
	s.want(s.gate("ga"), "2 reviewing")
	conform.Rule(t, "field asks 6", "a reviewer that crashed never passes, whatever it printed")
}

func TestRule19LimitWaitIsNeither(t *testing.T) {
	s := begin(t, "8-semantics 19", "a usage-limit wait is neither inconclusive nor a failure and has no bound", one())
	conform.Rule(t, "field asks 4", "usage limit: wait for the reset it names, resume the same attempt, never count")
	for range 20 {
		reset := s.now.Add(time.Hour)
		s.exit("a", Exit{Class: ClassLimit, ResumeAt: reset})
		s.want(s.step("a"), "1 ready", fmt.Sprint(s.r().Current("a").NotBefore.Equal(reset)), "true")
		s.later(time.Hour)
		s.want(s.step("a"), "1 running")
	}
	s.exit("a", Exit{Signal: "killed"}) // its one restart is still there
	s.later(backoffFirst)
	s.want(s.step("a"), "1 running")
	s.done("a")
	for range 20 {
		s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Exit: Exit{Class: ClassLimit}})
		s.later(limitMost)
		s.want(s.gate("ga"), "1 reviewing")
	}
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

// TestRule19PastReset: a program or a worker that always names a time that is over is not launched without a pause.
func TestRule19PastReset(t *testing.T) {
	s := begin(t, "8-semantics 19", "a usage limit whose end is over already is waited for, longer each time", one())
	for n := range 20 {
		s.exit("a", Exit{Class: ClassLimit, ResumeAt: s.now.Add(-time.Hour)})
		wait := backoff(n, backoffFirst, backoffMost)
		s.want(s.step("a"), "1 ready", s.r().Current("a").NotBefore.Sub(s.now).String(), wait.String())
		s.later(wait)
		s.want(s.step("a"), "1 running")
	}
}

// TestRule18LetThrough: the fact and the round record that work went on although its gate did not
// pass.
func TestRule18LetThrough(t *testing.T) {
	fixed := func(more ...func(*Gate)) *Spec { // a -> b -> c, and fix on the side of a
		return flow("x", aStep("a"), aGate("a", to("b"), append([]func(*Gate){most(3)}, more...)...), aStep("b"), aGate("b", to("c")), aStep("c"), aGate("c", to(EndDone)), aStep("fix"), aGate("fix", to("b")))
	}
	side := route("mend", "fix")
	for _, c := range []struct {
		name  string
		spec  *Spec
		words []string // of ga's rounds
		want  string   // of its last round: its target and number, or after how many failures it went on unpassed
	}{
		{"a route to where a pass leads", fixed(side, route("skip", "b")), []string{OutcomeFail, OutcomeFail, "skip"}, "b 3"},
		{"a route to what comes after that", fixed(side, route("leap", "c")), []string{"leap"}, "c 1"},
		{"on_fail that goes on", fixed(side, onFail("b")), []string{OutcomeFail}, "b 1"},
		{"on_fail that ends the branch well", fixed(side, onFail(EndDone)), []string{OutcomeFail}, "DONE 1"},
		{"on_exhausted: pass", fixed(side, exhausted(OutcomePass)), []string{OutcomeFail, OutcomeFail, OutcomeFail}, " 3"},
		{"on_exhausted: DONE", fixed(side, exhausted(EndDone)), []string{OutcomeFail, OutcomeFail, OutcomeFail}, "DONE 3"},
		{"on_exhausted to a step that goes on", fixed(side, exhausted("b")), []string{OutcomeFail, OutcomeFail, OutcomeFail}, "b 3"},
		{"a person's word for such a route", fixed(side, route("skip", "b")), []string{OutcomeFail, OutcomeFail, OutcomeFail}, "b 4"},
		{"a person's word for a failure that was counted before", fixed(side, onFail("b"), most(1)), []string{OutcomeFail}, "b 1"},
		{"a pass is none", fixed(side), []string{OutcomeFail, OutcomePass}, " 0"},
		{"nor a way back", fixed(side), []string{OutcomeFail}, "a 0"},
		{"nor a side step", fixed(side), []string{"mend"}, "fix 0"},
		{"nor a route that stops", fixed(side, route("stop", EndDone)), []string{"stop"}, "DONE 0"},
		{"nor an end that fails", fixed(side, exhausted(EndFailed)), []string{OutcomeFail, OutcomeFail, OutcomeFail}, "FAILED 0"},
	} {
		s := begin(t, "8-semantics 18", "let through: "+c.name, c.spec)
		for _, word := range c.words {
			s.done("a")
			s.judged("ga", word)
		}
		switch s.gate("ga") { // asked about the last failure, which counts then
		case "3 human":
			s.says("ga", "skip")
		case "1 human":
			s.says("ga", OutcomeFail)
		}
		s.replayed()
		qs := s.r().Rounds["ga"]
		q := qs[len(qs)-1]
		s.want(c.name+": "+q.To+" "+fmt.Sprint(q.LetThrough), c.name+": "+c.want)
	}
}

// TestRule18PersonsFailuresExhaust: a veto is a failure like any other. The m-th goes back, like
// every answer of a person, and from then on only a person passes the gate.
func TestRule18PersonsFailuresExhaust(t *testing.T) {
	conform.Rule(t, "004 §2 Retry.escalation veto", `"If a Gate has failed max_retries times, the workflow automatically escalates to level human regardless of the configured level": vetoes among them`)
	for _, lvl := range []string{LevelAuto, LevelNotify} {
		for _, word := range []string{OutcomeVeto, OutcomeFail} {
			for _, exh := range []string{Human, OutcomePass, EndFailed, EndDone, "c"} {
				w := flow("x", aStep("a"), aGate("a", to("b"), level(lvl), most(2), exhausted(exh)), aStep("b"), aGate("b", to("c")), aStep("c"), aGate("c", to(EndDone)))
				s := begin(t, "8-semantics 18", "a person's m-th failure goes back at once and asks nobody; the gate is a person's from the next round on, whatever on_exhausted says", w)
				for n := 1; n <= 2; n++ {
					s.done("a")
					s.want(s.gate("ga"), fmt.Sprint(n, " reviewing"))
					s.want(s.says("ga", word), "", s.step("a"), fmt.Sprint(n+1, " ready"), fmt.Sprint(s.r().Fails["ga"]), fmt.Sprint(n))
					s.stopped()
					s.want(fmt.Sprint(s.r().Forced["ga"]), fmt.Sprint(n == 2))
				}
				s.done("a")
				s.want(s.gate("ga"), "3 human", s.r().CurrentRound("ga").Why, "forced", s.step("b"), "-")
				s.replayed()
				s.scan()
				s.want(s.gate("ga"), "3 human")
				s.want(s.says("ga", OutcomePass), "", s.step("b"), "1 running")
			}
		}
	}
}

func TestRule18LateVetoesExhaust(t *testing.T) {
	s := begin(t, "8-semantics 18", "late vetoes count as well: after max_retries of them the gate asks", two(gates(level(LevelNotify), most(2)), nil))
	for n := 1; n <= 2; n++ {
		s.done("a")
		s.judged("ga", OutcomePass)
		s.tell()
		s.later(31 * time.Second)
		s.scan()
		s.want(s.gate("ga"), fmt.Sprint(n, " passed"), s.step("b"), fmt.Sprint(n, " running"))
		s.want(s.says("ga", OutcomeVeto), "", s.step("b"), "-")
		s.stopped()
	}
	s.done("a")
	s.want(s.gate("ga"), "3 human")
}

func TestRule18VetoOfWhatOnExhaustedPassed(t *testing.T) {
	s := begin(t, "8-semantics 18", "a late veto of what on_exhausted passed counts no second failure, and the gate is a person's", two(gates(most(1), exhausted(OutcomePass)), nil))
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.want(s.gate("ga"), "1 passed", s.step("b"), "1 running")
	s.want(s.says("ga", OutcomeVeto), "", fmt.Sprint(s.r().Fails["ga"], s.r().Forced["ga"]), "1 true")
	s.stopped()
	s.done("a")
	s.want(s.gate("ga"), "2 human")
}

func TestRule18MixedFailuresExhaust(t *testing.T) {
	s := begin(t, "8-semantics 18", "a reviewer's failures and a person's are one count", one(level(LevelNotify), most(3)))
	s.done("a")
	s.judged("ga", OutcomeFail)
	for range 2 {
		s.done("a")
		s.says("ga", OutcomeVeto)
		s.stopped()
	}
	s.done("a")
	s.want(s.gate("ga"), "4 human")
}

func TestRule18RunEndedByPersonForcesNothing(t *testing.T) {
	s := begin(t, "8-semantics 31", "a person's failure that ends the run forces nothing: who retries it begins the count anew", one(onFail(EndFailed), most(1)))
	s.done("a")
	s.want(s.says("ga", OutcomeFail), "", s.r().Phase, RunFailed)
	s.stopped()
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	s.done("a")
	s.want(s.gate("ga"), "2 reviewing")
}

// TestRuleAskedWithoutWords: without feedback, nothing follows the number of failures.
func TestRuleAskedWithoutWords(t *testing.T) {
	s := begin(t, "8-semantics 16", "used up without words", one(most(1)))
	s.done("a")
	s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Verdict: &Judgement{Outcome: OutcomeFail}})
	s.want(s.r().CurrentRound("ga").Why, "it failed 1 time")
}
