package engine

import (
	"fmt"
	"testing"

	"sluice/tools/conform"
)

// looped is a -> b, whose gate has a route back to a beside its failures: again.
func looped(more ...func(*Gate)) *Spec {
	return flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to("c"), append([]func(*Gate){onFail("b"), route("again", "a"), most(2)}, more...)...), aStep("c"), aGate("c", to(EndDone)))
}

// round does a, passes it, does b and has its gate answer with the word.
func (s *script) round(word string) {
	if s.r().Current("a") == nil || s.r().Current("a").State != Passed {
		s.done("a")
		s.judged("ga", OutcomePass)
	}
	s.done("b")
	s.judged("gb", word)
}

func TestRuleRouteHasItsOwnCount(t *testing.T) {
	s := begin(t, "13-law routes", "a named route keeps its own count", looped())
	conform.Rule(t, "8-semantics 14", "each route back has a count of its own")
	s.round("again")
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Fails["gb"], s.r().Routes["gb"]), "0 map[again:1]")
	s.round(OutcomeFail) // not the second of one kind
	s.want(s.step("b"), "3 ready", fmt.Sprint(s.r().Fails["gb"], s.r().Routes["gb"]), "1 map[again:1]")
	s.round("again") // this is
	s.want(s.gate("gb"), "3 human", s.step("b"), "3 gating")
	s.want(s.r().CurrentRound("gb").Why, "it said again 2 times: again of gb")
	// asked and answered: counted once
	s.want(s.says("gb", "again"), "", s.step("a"), "3 running", fmt.Sprint(s.r().Routes["gb"]), "map[again:2]")
	s.replayed()
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.want(s.gate("gb"), "4 human")
}

func TestRuleRouteIsNoFailure(t *testing.T) {
	s := begin(t, "13-law routes", "a named route writes no why it failed and is not called a failure", looped(route("away", "c")))
	s.round("again")
	q := s.r().Rounds["gb"][0]
	s.want(q.Route, "again", fmt.Sprint(q.File, len(s.owed(DoWrite))), "0 0", q.Feedback, "again of gb", q.To, "a")
	s.want(fmt.Sprint(count[GateFailed](s.log), count[RoundFailed](s.log), count[RetryContextOwed](s.log)), "0 0 0")
	s.round("away")
	s.want(s.gate("gb"), "2 routed", s.step("b"), "2 routed", s.step("c"), "1 running")
	s.want(fmt.Sprint(count[RoundFailed](s.log), count[RetryContextOwed](s.log)), "0 0")
	s.replayed()
}

// TestRuleRouteHasTheStepsWords: if the step's own answer names the route, its words are kept, like
// a reviewer's.
func TestRuleRouteHasTheStepsWords(t *testing.T) {
	for answer, want := range map[string]string{
		`{"next":"again","feedback":"cut it smaller"}`:                        "cut it smaller",
		`{"next":"again","summary":"too large"}`:                              "too large",
		`{"next":"again","feedback":"cut it smaller","summary":"too large"}`:  "cut it smaller",
		`{"next":"again","feedback":{"a":1},"summary":["x"]}`:                 "said beside it",
		`{"next":"fail","feedback":"it does not build","summary":"no words"}`: "it does not build",
	} {
		w := one(route("again", "a"), func(g *Gate) {
			g.Reviewer.AgentType, g.Reviewer.FromStep = "", true
			g.Verdict = Verdict{Name: &Text{Source: "next", Eval: func(e *Env) (string, error) { return e.Answer.(map[string]any)["next"].(string), nil }}}
		})
		s := begin(t, "13-law routes", "the words of a step whose own answer takes the route", w)
		s.sentinel("a", StatusDone, func(ev *FileSeen) {
			ev.Sentinel.Answer, ev.Sentinel.Summary = []byte(answer), "said beside it"
		})
		s.exit("a", Exit{})
		s.checked()
		q := s.r().Rounds["ga"][0]
		s.want(q.To, "a", q.Feedback, want)
	}
}

// TestRuleRouteBlockedAndLost: a blocked step, and a lost result, can have routes too.
func TestRuleRouteBlockedAndLost(t *testing.T) {
	s := begin(t, "13-law routes", "blocked and lost are named routes too", one(route(OutcomeBlocked, "a"), route(OutcomeLost, "a"), most(2)))
	s.sentinel("a", StatusBlocked)
	s.exit("a", Exit{})
	s.checked()
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Fails["ga"], s.r().Routes["ga"]), "0 map[blocked:1]")
	s.exit("a", Exit{Signal: "killed"})
	s.later(backoffFirst)
	s.exit("a", Exit{Signal: "killed"})
	s.checked()
	s.want(s.step("a"), "3 running", fmt.Sprint(s.r().Fails["ga"], s.r().Routes["ga"]), "0 map[blocked:1 lost:1]")
}

func TestRuleRouteOverAnUnchangedTree(t *testing.T) {
	w := one(route("again", "a"), most(9))
	s := begin(t, "13-law routes", "a loop over an unchanged tree does not need max_same_failure: it is no failure that comes again", w)
	for n := range 5 {
		s.sentinel("a", StatusDone)
		s.exit("a", Exit{})
		s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{OK: true, Digest: "same"}})
		s.judged("ga", "again")
		s.want(s.step("a"), fmt.Sprint(n+2, " running"))
	}
}

func TestRuleRouteExhausted(t *testing.T) {
	for exh, want := range map[string]string{OutcomePass: RunRunning, EndFailed: RunFailed, EndAborted: RunAborted, EndDone: RunCompleted, Human: RunRunning} {
		s := begin(t, "13-law routes", "a route back that is used up goes where on_exhausted leads: "+exh, looped(exhausted(exh)))
		s.round("again")
		s.round("again")
		s.want(s.r().Phase, want)
		switch q := s.r().Rounds["gb"][1]; exh {
		case OutcomePass:
			s.want(s.gate("gb"), "2 passed", s.step("c"), "1 running", fmt.Sprint(q.LetThrough, q.Route), "2again")
		case EndDone:
			s.want(q.State, ByRoute, fmt.Sprint(q.Times, q.LetThrough > 0), "2 true", q.Route, "again")
		case Human:
			s.want(s.gate("gb"), "2 human")
		}
		s.replayed()
	}
}

func TestRuleRouteOfAPerson(t *testing.T) {
	s := begin(t, "13-law routes", "a person's own route always goes; after the m-th of one kind the gate is a person's", looped(level(LevelHuman)))
	for n := 1; n <= 3; n++ {
		s.done("a")
		s.judged("ga", OutcomePass)
		s.done("b")
		s.want(s.says("gb", "again"), "", s.step("a"), fmt.Sprint(n+1, " running"), fmt.Sprint(s.r().Routes["gb"]), fmt.Sprintf("map[again:%d]", n))
	}
	s = begin(t, "13-law routes", "so it is where a person was asked for another reason", looped(route("hold", Human)))
	for n := 1; n <= 2; n++ {
		s.round("hold")
		s.want(s.gate("gb"), fmt.Sprint(n, " human"))
		s.want(s.says("gb", "again"), "", fmt.Sprint(s.r().Forced["gb"]), fmt.Sprint(n == 2))
	}
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.want(s.gate("gb"), "3 human")
}

func TestRuleRouteOfAPersonAfterAFailure(t *testing.T) {
	s := begin(t, "13-law routes", "a round is in one count: what a person answers to a counted route is not counted again", looped(most(1)))
	s.round("again")
	s.want(s.gate("gb"), "1 human")
	s.want(s.says("gb", OutcomeFail), "", fmt.Sprint(s.r().Fails["gb"], s.r().Routes["gb"], s.r().Rounds["gb"][0].Route == ""), "0 map[again:1] true")
	s.writes()
	s.want(s.step("b"), "2 running")
}

// TestRuleRouteExhaustedInVerdict: a loop by a route ends by the same condition as loops by
// on_fail.
func TestRuleRouteExhaustedInVerdict(t *testing.T) {
	w := looped(most(3))
	w.Gates[1].Verdict = Verdict{Rules: []Rule{{Outcome: "again", When: Cond{Eval: func(e *Env) (bool, error) { return !e.Exhausted, nil }}}, {Outcome: OutcomePass}}}
	s := begin(t, "13-law routes", "exhausted is true when one more of any kind would use that up", w)
	s.round("x")
	s.round("x")
	s.want(s.step("a"), "3 running")
	s.round("x")
	s.want(s.gate("gb"), "3 passed", s.step("c"), "1 running")
}

func TestRuleRouteReset(t *testing.T) {
	w := flow("x", aStep("a"), aGate("a", to("b"), route("again", "a"), most(2)), aStep("b"), aGate("b", to(EndDone), route("back", "a"), most(3)))
	s := begin(t, "8-semantics 17", "going back by a route resets the counts of routes upstream, as a failure does", w)
	s.done("a")
	s.judged("ga", "again")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(fmt.Sprint(s.r().Routes["ga"]), "map[again:1]")
	s.done("b")
	s.judged("gb", "back")
	s.want(fmt.Sprint(len(s.r().Routes["ga"]), s.r().Routes["gb"]), "0 map[back:1]")
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	s.want(fmt.Sprint(len(s.r().Routes["gb"])), "0")
}

// TestRuleExhaustedStepRenews: a -> b, whose gate leads to a when it is used up. a's own gate may
// pass the work to b unpassed.
func TestRuleExhaustedStepRenews(t *testing.T) {
	spec := func() *Spec {
		return flow("x", aStep("a"), aGate("a", to("b"), route("skip", "b")), aStep("b"), aGate("b", to(EndDone), route("again", "b"), most(2), exhausted("a")))
	}
	counts := func(s *script) string { return fmt.Sprint(s.r().Fails["gb"], s.r().Routes["gb"]) }
	s := begin(t, "13-law again", "when the step of on_exhausted passes, the count begins anew: all counts of the gate", spec())
	s.round("again")
	s.round(OutcomeFail)
	s.round(OutcomeFail)
	s.want(s.step("a"), "2 ready", counts(s), "2 map[again:1]")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "4 running", counts(s), "0 map[]")
	s.replayed()
	s.round("again") // its full tries again
	s.round("again")
	s.want(s.gate("gb"), "5 human", s.step("a"), "2 passed") // and then a person
	s.replayed()

	s = begin(t, "13-law again", "it does not begin anew where that step did not pass", spec())
	s.round(OutcomeFail)
	s.round(OutcomeFail)
	s.done("a")
	s.judged("ga", "skip")
	s.want(s.step("b"), "3 running", counts(s), "2 map[]")
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.want(s.gate("gb"), "3 human")

	s = begin(t, "13-law again", "they begin anew once: later passes of that step begin nothing", looped(exhausted("a")))
	s.round(OutcomeFail)
	s.round(OutcomeFail)
	s.round("again")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "4 running", counts(s), "0 map[again:1]")
	s.round("again")
	s.want(s.gate("gb"), "4 human")

	s = begin(t, "13-law again", "the step judged passes by this gate alone: it has the full tries at once", flow("x", aStep("a"), aGate("a", to(EndDone), most(2), exhausted("a"))))
	for n := range 3 {
		s.done("a")
		s.judged("ga", OutcomeFail)
		s.want(s.step("a"), fmt.Sprint(n+2, " ready"))
	}
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.want(s.gate("ga"), "4 human")
}

// TestRuleExhaustedStepForgetsSameness: earlier failures do not make the judge of repeated work ask
// a person.
func TestRuleExhaustedStepForgetsSameness(t *testing.T) {
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), most(3), exhausted("a")))
	s := begin(t, "13-law again", "what failed alike before that step passed counts as nothing", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	fail := func() {
		s.writes()
		s.sentinel("b", StatusDone)
		s.exit("b", Exit{})
		s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{OK: true, Digest: "same"}})
		s.judged("gb", OutcomeFail)
	}
	for range 3 {
		fail()
	}
	s.done("a")
	s.judged("ga", OutcomePass)
	fail()
	s.want(s.step("b"), "5 ready")
}

// TestRuleOldFactsOfRoutes: journals of older releases record a route back as a failure, and counts
// that restarted at once.
func TestRuleOldFactsOfRoutes(t *testing.T) {
	s := begin(t, "13-law routes", "facts of older releases are replayed as they were meant", looped())
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	at := s.now
	s.st.Apply(at, GateFailed{of: Of(s.run), Gate: "gb", N: 1, Count: 1, Outcome: "again"})
	s.st.Apply(at, RoundFailed{of: Of(s.run), Gate: "gb", N: 1, Outcome: "again", ByKind: "reviewer", To: "a"})
	q := s.r().Rounds["gb"][0]
	s.want(q.State, Refused, q.Route, "", fmt.Sprint(s.r().Fails["gb"], len(s.r().Routes)), "1 0")
	s.st.Apply(at, ExhaustedTo{of: Of(s.run), Gate: "gb", To: "a"})
	s.want(fmt.Sprint(s.r().Fails["gb"], s.r().Exhausted["gb"], len(s.r().Renews)), "0 true 0")
}
