package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"sluice/tools/conform"
)

func TestRuleGateOutputsFirst(t *testing.T) {
	w := two(nil, nil)
	w.Gates[0].Outputs = []Output{{Path: Text{Source: "plan.json"}}}
	s := begin(t, "1-language outputs", "a gate's outputs are written from its answer before the work goes on", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "1 ready", fmt.Sprint(len(s.owed(DoWrite)), s.owed(DoWrite)[0].Write.File), "1 0")
	s.restart(0)
	s.want(s.step("b"), "1 ready")
	s.writes()
	s.want(s.step("b"), "1 running")
}

func TestRuleRouteToHuman(t *testing.T) {
	s := begin(t, "1-language 6", "an outcome whose route is human makes this round a human's", one(route("unsure", Human)))
	s.done("a")
	s.judged("ga", "unsure")
	s.want(s.gate("ga"), "1 human", fmt.Sprint(s.r().Fails["ga"]), "0", s.r().CurrentRound("ga").Outcome, "unsure")
}

func TestRuleGateWhen(t *testing.T) {
	var err error
	w := one(func(g *Gate) {
		g.When = Cond{Source: "vars.deep", Eval: func(*Env) (bool, error) { return false, err }}
	})
	s := begin(t, "1-language when", "a gate whose when is false passes unjudged; one that cannot be computed fails", w)
	s.done("a")
	s.want(s.r().Phase, RunCompleted, s.r().Rounds["ga"][0].ByKind, "when", fmt.Sprint(count[ReviewStarted](s.log)), "0")
	err = errors.New("vars.deep is not there")
	s.start("x")
	s.done("a")
	s.want(s.step("a"), "2 ready", s.r().Rounds["ga"][0].Feedback, "when: vars.deep is not there")
}

func TestRuleVerdictSees(t *testing.T) {
	var seen Env
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), func(g *Gate) {
		g.Verdict = Verdict{Name: &Text{Source: "${{…}}", Eval: func(e *Env) (string, error) { seen = *e; return OutcomePass, nil }}}
	}))
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s := begin(t, "1-language values", "a verdict sees the reviewer's answer, score and findings, the latest of steps and gates, and this gate's failures", w)
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(`{"plan":"p","summary":"did it"}`)})
	s.checked()
	s.judged("ga", OutcomePass)
	s.done("b")
	score := 71.0
	s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("gb").Key, Verdict: &Judgement{Outcome: "hm", Score: &score, Scores: map[string]float64{"security": 60},
		Answer: json.RawMessage(`{"x":1}`), Findings: json.RawMessage(`[{"severity":"high"}]`)}})
	s.want(s.r().Phase, RunCompleted,
		fmt.Sprint(seen.Answer), "map[x:1]", fmt.Sprint(seen.Score), "71", fmt.Sprint(seen.Scores), "map[security:60]", fmt.Sprint(len(seen.Findings)), "1",
		fmt.Sprint(seen.Steps["a"].Answer), "map[plan:p summary:did it]", seen.Steps["a"].Status, Passed, fmt.Sprint(seen.Steps["a"].Attempt), "1",
		seen.Gates["ga"].Verdict, OutcomePass, fmt.Sprint(seen.Failures, seen.Exhausted), "0 false", seen.Run, "x-1", seen.Gate, "gb", seen.Step, "b")
	for _, f := range s.log {
		if j, ok := f.(Judged); ok && j.Gate == "gb" && (j.Word != "hm" || j.Outcome != OutcomePass) {
			t.Errorf("the reviewer's own word is kept beside the outcome: %+v", j)
		}
	}
}

func TestRuleFromStep(t *testing.T) {
	w := one(func(g *Gate) {
		g.Reviewer.AgentType, g.Reviewer.FromStep = "", true
		g.Verdict = Verdict{Rules: []Rule{{Outcome: OutcomePass, When: Cond{Eval: func(e *Env) (bool, error) {
			score, ok := e.Score.(float64)
			if !ok {
				return false, errors.New("score is not there")
			}
			return score >= 70, nil
		}}}, {Outcome: "revise"}}}
	})
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s := begin(t, "1-language reviewer", "from: step judges by the step's own report and answer, without another process", w)
	answer := func(a string) {
		s.writes()
		s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(a)})
		s.checked()
	}
	answer(`{"score": 50}`)
	s.want(s.step("a"), "2 ready", s.r().Rounds["ga"][0].Outcome, "revise")
	answer(`{"score": "high"}`) // of another type is not there: inconclusive
	s.want(s.gate("ga"), "2 human")
	s.has(s.r().CurrentRound("ga").Why, "score is not there")
	conform.Rule(t, "field asks 6", "an answer that is not to form never passes")
}
