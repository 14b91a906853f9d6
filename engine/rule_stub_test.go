package engine

import (
	"fmt"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// stubbed requests a run played by stand-ins, and makes it the current one.
func (s *script) stubbed(workflow string) {
	s.t.Helper()
	s.do(RunRequested{Workflow: workflow, Digest: "d-" + workflow, Stubs: []byte(`{"commands":"pass"}`), By: Actor{Who: "ann"}})
	s.run = s.st.Order[len(s.st.Order)-1]
	s.writes()
}

// TestStubbedIsNoRealWork: a real run never builds on what stand-ins made; stubbed runs may.
func TestStubbedIsNoRealWork(t *testing.T) {
	conform.Rule(t, "6-seeds stub", "a real run's need is not met by a run that stand-ins played")
	y := flow("y", aStep("b"), aGate("b", to(EndDone)))
	s := begin(t, "", "", extFlow(), y)
	s.stubbed("y")
	s.want(fmt.Sprint(s.r().Stubbed())+string(s.r().Stubs), `true{"commands":"pass"}`)
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(fmt.Sprint(len(s.owed(DoLook))), "0")
	s.run = "x-1"
	s.do(AbortRequested{Run: "x-1", By: ann})
	s.stubbed("x")
	s.want(s.run, "x-2", fmt.Sprint(len(s.owed(DoLook))), "1")
	s.do(Looked{Run: "x-2", Step: "a", Pins: s.owed(DoLook)[0].Pins})
	s.want(s.step("a"), "1 running")
	s.restart(0)
	s.want(fmt.Sprint(s.r().Stubbed(), s.st.Runs["x-1"].Stubbed()), "true false")

	// An older real run counts if a newer one was played.
	s = begin(t, "", "", extFlow(), flow("y", aStep("b"), aGate("b", to(EndDone))))
	s.start("y")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.stubbed("y")
	s.want(fmt.Sprint(s.owed(DoLook)[0].Pins), "[y-1/b#1]")
}

// TestStubsAreBounded: the stand-ins' script is in the run's first fact, so its size is limited.
func TestStubsAreBounded(t *testing.T) {
	for name, stubs := range map[string]string{"no JSON": `{"commands"`, "too much": `"` + strings.Repeat("x", MaxStubs) + `"`} {
		s := begin(t, "", "", one())
		s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true, Stubs: []byte(stubs), By: ann})
		if len(s.st.Order) != 1 {
			t.Errorf("%s: a run was started", name)
		}
	}
}

// TestAStepSeesItsOwnLastAnswer: a repeated step sees its earlier answer until it answers again.
func TestAStepSeesItsOwnLastAnswer(t *testing.T) {
	w := one()
	w.Steps[0].Signal = Signal{Type: SignalExit}
	s := begin(t, "1-language values", "a step that is done anew sees the newest answer it gave", w)
	see := func(n int) string { return fmt.Sprint(s.st.StepEnv(s.r(), w, "a", n).Steps["a"].Answer) }
	s.want(see(1), "<nil>")
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(`{"plan":"one"}`)})
	s.checked()
	s.judged("ga", OutcomeFail)
	s.writes()
	s.want(s.step("a"), "2 running", see(2), "map[plan:one]")
	s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Answer: []byte(`{"plan":"two"}`)})
	s.want(see(2), "map[plan:two]")
}
