package engine

import (
	"errors"
	"strings"
	"testing"

	"sluice/tools/conform"
)

func faults(w *Spec) string {
	var out []string
	for _, f := range w.Link() {
		out = append(out, f.Kind+": "+f.Message)
	}
	return strings.Join(out, "\n")
}

func TestRule01ForwardEdgesFormNoCycle(t *testing.T) {
	conform.Rule(t, "8-semantics 1", "a cycle of passes and needs is a load error that names it")
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to("a")))
	if f := faults(w); !strings.Contains(f, "cycle a -> b -> a") || !strings.Contains(f, "name it under on_fail or routes") {
		t.Errorf("got %q", f)
	}
	w = flow("x", aStep("a", needs("b")), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone)))
	if f := faults(w); !strings.Contains(f, "cycle") {
		t.Errorf("needs are edges too: got %q", f)
	}
}

func TestRule02BackOrElsewhere(t *testing.T) {
	conform.Rule(t, "8-semantics 2", "on_fail, routes and on_exhausted to the step itself or upstream lead back; anything else leads elsewhere and becomes a forward edge")
	conform.Rule(t, "1-language rule 1", "what goes back, and what elsewhere")
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), onFail("a"), route("side", "c")), aStep("c"), aGate("c", to(EndDone)))
	if f := faults(w); f != "" {
		t.Fatal(f)
	}
	if !w.leadsBack("a", "b") || !w.leadsBack("b", "b") || w.leadsBack("c", "b") {
		t.Error("back is the step itself and upstream of it, nothing else")
	}
	if got := strings.Join(w.Forward("b"), " "); got != "c" {
		t.Errorf("forward of b: %q", got)
	}
	// In file order: b -> c is read first and goes forward, so c -> b goes back.
	w = flow("x", aStep("a"), aGate("a", to("b", "c")), aStep("b"), aGate("b", to(EndDone), onFail("c")), aStep("c"), aGate("c", to(EndDone), onFail("b")))
	if f := faults(w); f != "" {
		t.Fatal(f)
	}
	if w.leadsBack("c", "b") || !w.leadsBack("b", "c") {
		t.Error("the first in the file makes the edge")
	}
}

func TestRule03ImplicitGate(t *testing.T) {
	conform.Rule(t, "1-language rule 2", "a step without a gate that fails ends the run FAILED")
	a, ga := ungated("a", to(EndDone))
	s := begin(t, "8-semantics 3", "a step without a gate has an implicit one: it passes by its own word, a failure ends the run FAILED", flow("x", a, ga))
	s.done("a")
	s.want(s.r().Phase, RunCompleted, s.r().Rounds["a"][0].ByKind, "step")
	s.start("x")
	s.sentinel("a", StatusFailed)
	s.exit("a", Exit{})
	s.checked()
	s.want(s.r().Phase, RunFailed, s.r().EndStep, "a")
}

func TestRule04Starts(t *testing.T) {
	w := flow("x", aStep("a"), aGate("a", to(EndDone)), aStep("b", needs()), aGate("b", to(EndDone)), aStep("c", needs("a", "b")), aGate("c", to(EndDone)))
	s := begin(t, "8-semantics 4", "the first step starts, one with needs [] at once, one that only needs lead to when they have passed", w)
	s.want(s.step("a"), "1 running", s.step("b"), "1 running", s.step("c"), "-")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("c"), "-")
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.step("c"), "1 running")
	if f := faults(flow("x", aStep("a"), aGate("a", to(EndDone)), aStep("z"), aGate("z", to(EndDone)))); !strings.Contains(f, "step z is never reached") {
		t.Errorf("an unreached step is a load error: %q", f)
	}
	if f := faults(flow("x", aStep("a"), aGate("a", to(EndDone), onFail("fix")), aStep("fix"), aGate("fix", to(EndDone)))); f != "" {
		t.Errorf("a fixing step is reached by failures: %q", f)
	}
}

// diamond is a -> b, c -> d.
func diamond(parts ...any) *Spec {
	return flow("x", append([]any{aStep("a"), aGate("a", to("b", "c")), aStep("b"), aGate("b", to("d")), aStep("c"), aGate("c", to("d"), onFail("a")),
		aStep("d"), aGate("d", to(EndDone))}, parts...)...)
}

func TestRule08Join(t *testing.T) {
	conform.Rule(t, "8-semantics 7", "a step is led to by what passed, and starts when nothing upstream is at work")
	conform.Rule(t, "1-language rule 1", "branches that meet are joined, once a lap")
	conform.Rule(t, "004 §2 Task", "a branching sequence that ends complete")
	s := begin(t, "8-semantics 8", "branches that meet are joined, and a join fires once per lap", diamond())
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.step("b"), "1 passed", s.step("d"), "-")
	s.done("c")
	s.judged("gc", OutcomePass)
	s.want(s.step("d"), "1 running")
	s.done("d")
	s.judged("gd", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
	if n := len(s.r().Attempts["d"]); n != 1 {
		t.Errorf("the join fired %d times", n)
	}
}

func TestRule08AlternativeNotTaken(t *testing.T) {
	conform.Rule(t, "8-semantics 7", "an outcome that does not name a step leads nowhere")
	w := flow("x", aStep("a"), aGate("a", to("b"), route("other", "c")), aStep("b"), aGate("b", to("d")), aStep("c"), aGate("c", to("d")), aStep("d"), aGate("d", to(EndDone)))
	s := begin(t, "8-semantics 8", "an alternative that was not taken holds up nobody", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomePass)
	s.want(s.step("c"), "-", s.step("d"), "1 running")
}

func TestRule09NeedThatCannotPass(t *testing.T) {
	conform.Rule(t, "field asks 13", "who can never start is named")
	w := flow("x", aStep("a"), aGate("a", to("b"), route("other", "c")), aStep("b"), aGate("b", to(EndDone)), aStep("c"), aGate("c", to(EndDone)), aStep("n", needs("b")), aGate("n", to(EndDone)))
	s := begin(t, "8-semantics 9", "a needs-only step whose need cannot pass any more is not reached: it holds up nobody", w)
	s.done("a")
	s.judged("ga", "other")
	s.done("c")
	s.judged("gc", OutcomePass)
	s.want(s.r().Phase, RunCompleted, s.step("n"), "-")
	w = flow("x", aStep("a"), aGate("a", to("b"), route("other", "c")), aStep("b"), aGate("b", to(EndDone)), aStep("c"), aGate("c", to("n")), aStep("n", needs("b")), aGate("n", to(EndDone)))
	s = begin(t, "8-semantics 9", "a step that work was led to and whose need cannot pass any more ends the run as failed, naming both", w)
	s.done("a")
	s.judged("ga", "other")
	s.done("c")
	s.judged("gc", OutcomePass)
	s.want(s.r().Phase, RunFailed, s.r().EndStep, "n")
	s.has(s.r().EndWhy, "step n", "but b")
}

func TestRule10When(t *testing.T) {
	conform.Rule(t, "1-language values.missing", "what is not there yet in a when is a failed step")
	when := false
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b", func(st *Step) {
		st.When = Cond{Source: "vars.full", Eval: func(*Env) (bool, error) { return when, nil }}
	}), aGate("b", to("c"), level(LevelHuman)), aStep("c"), aGate("c", to(EndDone), onFail("a")))
	s := begin(t, "8-semantics 10", "when is asked each time the step would start; false = skipped, its gates are not asked, on as after a pass", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "1 skipped", s.gate("gb"), "-", s.step("c"), "1 running")
	s.done("c")
	s.judged("gc", OutcomeFail)
	when = true
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "2 running", s.step("c"), "-")
	w = flow("x", aStep("a", func(st *Step) {
		st.When = Cond{Source: "steps.z.answer", Eval: func(*Env) (bool, error) { return false, errors.New("not there yet") }}
	}), aGate("a", to(EndDone)))
	s = begin(t, "1-language values", "what is not there yet in a when is a failed step", w)
	s.has(s.r().Rounds["ga"][0].Feedback, "not there yet")
	if s.r().Fails["ga"] == 0 {
		t.Error("a failed step counts at its gate")
	}
}

func TestRule11AttemptIdentity(t *testing.T) {
	s := begin(t, "8-semantics 11", "n counts all attempts and never returns; a relaunch is the same attempt with k+1 and a new key", flow("x", aStep("a"), aGate("a", to(EndDone), onFail("a"))))
	s.exit("a", Exit{Signal: "killed"})
	s.later(backoffFirst)
	a := s.r().Current("a")
	s.want(s.step("a"), "1 running", a.Key, "x-1/a#1.2")
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.writes()
	s.want(s.step("a"), "2 running", s.r().Current("a").Key, "x-1/a#2.1", s.r().Attempts["a"][0].State, Superseded)
}

// sidestep is plan -> impl -> review; review's failures go to fix, whose pass leads back to review
// and whose failure to impl.
func sidestep() *Spec {
	return flow("x", aStep("plan"), aGate("plan", to("impl")), aStep("impl"), aGate("impl", to("review")),
		aStep("review"), aGate("review", to(EndDone), onFail("fix"), most(9)), aStep("fix"), aGate("fix", to("review"), onFail("impl")))
}

func TestRule15UndoFollowsWhatWasLaunched(t *testing.T) {
	const rule = "Undo follows what was in fact launched because of the step, not the edges that might be taken."
	s := begin(t, "13-law undo", rule, sidestep())
	for _, step := range []string{"plan", "impl"} {
		s.done(step)
		s.judged("g"+step, OutcomePass)
	}
	s.done("review")
	s.judged("greview", OutcomeFail)
	s.want(s.step("fix"), "1 ready", s.step("impl"), "1 passed", s.step("review"), "-")
	s.done("fix")
	s.judged("gfix", OutcomePass)
	s.want(s.step("review"), "2 running", s.step("impl"), "1 passed")

	// If fix fails, the work is actually sent to impl: then it is undone, with its successors.
	s.done("review")
	s.judged("greview", OutcomeFail)
	s.want(s.step("fix"), "2 ready", s.step("impl"), "1 passed")
	s.done("fix")
	s.judged("gfix", OutcomeFail)
	s.want(s.step("fix"), "2 routed", s.step("impl"), "2 ready")
	s.done("impl")
	s.judged("gimpl", OutcomePass)
	s.want(s.step("review"), "3 running")

	// impl.2 was launched because of fix.2.
	s.done("review")
	s.judged("greview", OutcomeFail)
	s.want(s.step("fix"), "3 ready", s.step("impl"), "-")
}

func TestRule15RouteToWhatComesBefore(t *testing.T) {
	w := flow("x", aStep("build"), aGate("build", to("check")), aStep("check"), aGate("check", to(EndDone), onFail("fix")),
		aStep("fix"), aGate("fix", to("check"), onFail("prep")), aStep("prep"), aGate("prep", to("build")))
	s := begin(t, "8-semantics 15", "work sent to a step undoes what its pass leads to", w)
	s.done("build")
	s.judged("gbuild", OutcomePass)
	s.done("check")
	s.judged("gcheck", OutcomeFail)
	s.done("fix")
	s.want(s.step("build"), "1 passed")
	s.judged("gfix", OutcomeFail)
	s.want(s.step("prep"), "1 ready", s.step("build"), "-")
	s.done("prep")
	s.judged("gprep", OutcomePass)
	s.want(s.step("build"), "2 running")
}
