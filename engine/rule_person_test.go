package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// asksFor makes the gate require n, and defaults d.
func asksFor(g *Gate) {
	g.Answer = &Schema{}
	g.ReadAnswer = func(raw json.RawMessage) (json.RawMessage, error) {
		switch {
		case strings.Contains(string(raw), `"d"`):
			return raw, nil
		case strings.Contains(string(raw), `"n"`):
			return json.RawMessage(strings.TrimSuffix(string(raw), "}") + `,"d":1}`), nil
		}
		return nil, errors.New("the answer lacks n: sluice pass ga -a n=1")
	}
}

// gives adds an answer to a person's decision.
func gives(answer string) func(*Answered) {
	return func(a *Answered) { a.Answer = json.RawMessage(answer) }
}

func TestRulePersonAnswer(t *testing.T) {
	s := begin(t, "13-law answer", "\"a person's answer as data (2)\": \"`answer:` (a schema) at a human gate; `sluice pass G -a replicas=2`, a form in the terminal; `gates.G.answer`\"",
		two(gates(level(LevelHuman), asksFor, route("again", "a"), func(g *Gate) { g.Outputs = []Output{{}} }), nil))
	s.done("a")
	s.want(s.says("ga", OutcomePass), "the answer lacks n: sluice pass ga -a n=1", s.gate("ga"), "1 human")
	s.has(s.says("ga", OutcomePass, gives(`{"x":1}`)), "the answer lacks n")
	s.has(s.says("ga", OutcomePass, gives(`{"n":"`+strings.Repeat("x", MaxAnswer)+`"}`)), "more than 65536 bytes")
	s.has(s.says("ga", OutcomeFail, gives(`{"n":1}`)), "an answer goes with a pass, and this is fail", "`sluice pass ga`")
	s.has(s.says("ga", "again", gives(`{"n":1}`)), "and this is again")
	s.want(s.gate("ga"), "1 human", fmt.Sprint(count[RoundPassed](s.log)), "0")
	say := HumanSay{Answer: json.RawMessage(`{"x":1}`)}
	s.has(ignored(s.answers("ga-pass.json", &say)), "the answer lacks n")
	s.want(s.gate("ga"), "1 human")
	s.want(s.says("ga", OutcomePass, gives(`{"n":1}`)), "", s.step("b"), "1 ready")
	q := s.r().Rounds["ga"][0]
	s.want(string(q.Answer), `{"n":1,"d":1}`, q.Feedback, "because", fmt.Sprint(s.owes(DoWrite, "x-1/ga#1.answer")), "true")
	s.restart(0)
	env := s.st.StepEnv(s.r(), s.specs["d-x"], "b", 1)
	s.want(fmt.Sprint(env.Gates["ga"].Answer), "map[d:1 n:1]")
}

// A fail and a route need no answer; nor does the pass of a round that only became a person's,
// whose answer replaces the reviewer's.
func TestRulePersonAnswerFree(t *testing.T) {
	s := begin(t, "", "", one(level(LevelHuman), asksFor, route("again", "a")))
	s.done("a")
	s.want(s.says("ga", "again"), "", s.step("a"), "2 running")
	s.done("a")
	s.want(s.says("ga", OutcomeFail), "", s.step("a"), "3 ready")

	for _, answer := range []string{"", `{"n":1}`} {
		s = begin(t, "", "", one(level(LevelAuto), asksFor, func(g *Gate) { g.Routes = []Route{{"look", Human}} }))
		s.done("a")
		s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key, Verdict: &Judgement{Outcome: "look", Answer: json.RawMessage(`{"n":7}`)}})
		s.want(s.gate("ga"), "1 human", s.says("ga", OutcomePass, gives(answer)), "", s.r().Phase, RunCompleted)
		want := `{"n":7}`
		if answer != "" {
			want = `{"n":1,"d":1}`
		}
		s.want(string(s.r().Rounds["ga"][0].Answer), want)
	}

	s = begin(t, "", "", one(level(LevelHuman)))
	s.done("a")
	s.has(s.says("ga", OutcomePass, gives(`{"n":1}`)), "gate ga asks for no answer")
	s.want(s.gate("ga"), "1 human", s.says("ga", OutcomePass), "")
}

// comments are what a person says of lines, beside the words.
func comments(list string) func(*Answered) {
	return func(a *Answered) { a.Findings = json.RawMessage(list) }
}

// TestRulePersonComments: comments on lines go with a fail or a veto. They stand beside what a
// reviewer found, and whoever reads the feedback reads them too.
func TestRulePersonComments(t *testing.T) {
	const list = `[{"file":"a.go","line":3,"message":"no"}]`
	found := json.RawMessage(`[{"message":"of the reviewer"}]`)
	s := begin(t, "", "", one(level(LevelAuto), route("look", Human), most(9)))
	asked := func() {
		s.done("a")
		s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key,
			Verdict: &Judgement{Outcome: "look", Feedback: "hm", Findings: found}})
	}
	say := func(text string) func(*Answered) { return func(a *Answered) { a.Text = text } }
	last := func() *Round { return s.r().Rounds["ga"][len(s.r().Rounds["ga"])-1] }
	asked()
	s.has(s.says("ga", OutcomePass, comments(list)), "comments go with a fail or a veto, and this is pass")
	s.want(s.gate("ga"), "1 human", s.says("ga", OutcomeFail, comments(list), say("not yet")), "")
	s.want(string(last().Comments), list, string(last().Findings), string(found), last().Feedback, "not yet", last().Said, "hm")
	s.want(s.st.StepEnv(s.r(), s.specs["d-x"], "a", 2).Gates["ga"].Feedback, "not yet\n\nComments:\n- a.go:3: no")
	s.restart(0)
	asked()
	s.want(s.says("ga", OutcomeFail, comments(list), say("")), "", last().Feedback, "", last().Said, "hm", string(last().Comments), list)
	asked()
	s.want(s.says("ga", OutcomeFail, say("")), "", last().Feedback, "hm", string(last().Comments), "")
	asked()
	file := HumanSay{Text: "by file", Findings: json.RawMessage(list)}
	s.want(ignored(s.answers("ga-fail.json", &file)), "", string(last().Comments), list)
}

// The signed answer alone counts, complete: nothing beside it and nothing filled in later.
func TestRulePersonAnswerSigned(t *testing.T) {
	s := begin(t, "", "", approved(asksFor))
	conform.Rule(t, "4-trust bound", "the signature says all of it")
	s.done("a")
	signed := func(answer string) func(*Answered) {
		return s.signs("ga", func(g *Signed) { g.Answer = json.RawMessage(answer) })
	}
	s.has(s.says("ga", OutcomePass, signed(""), gives(`{"n":2}`)), "the answer lacks n")
	s.has(s.says("ga", OutcomePass, signed(`{"n":1}`)), `what was signed is not the whole answer, which is {"n":1,"d":1}`)
	s.want(s.gate("ga"), "1 human", fmt.Sprint(count[SignatureUsed](s.log)), "0")
	s.want(s.says("ga", OutcomePass, signed(`{"n":1,"d":1}`), gives(`{"n":2}`)), "", s.r().Phase, RunCompleted)
	s.want(string(s.r().Rounds["ga"][0].Answer), `{"n":1,"d":1}`)
}
