package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestConditionsAreAskedOnce: a condition's result is a fact; neither time, nor scans, nor a replay
// evaluates it again.
func TestConditionsAreAskedOnce(t *testing.T) {
	whens, verdicts := 0, 0
	w := flow("x", aStep("a", func(st *Step) {
		st.When = Cond{Source: "vars.full", Eval: func(*Env) (bool, error) { whens++; return true, nil }}
	}), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone)))
	w.Gates[0].Verdict = Verdict{Rules: []Rule{{Outcome: OutcomePass, When: Cond{Eval: func(*Env) (bool, error) { verdicts++; return true, nil }}}}}
	s := begin(t, "1-language values.fact", "what a condition gave is kept: asked once, not by time, scans or a replay", w)
	settle := func() {
		t.Helper()
		s.later(time.Minute)
		s.scan()
		s.restart(time.Second)
		s.scan()
	}
	settle()
	s.done("a")
	s.judged("ga", OutcomeFail) // the condition of `verdict` says pass
	settle()
	s.want(s.step("a"), "1 passed", s.step("b"), "1 running")
	if whens != 1 || verdicts != 1 {
		t.Errorf("when was asked %d times, the verdict's condition %d times, want once each", whens, verdicts)
	}
}

// TestStatesAreDocumented: each phase and state has a comment on how it is entered or left, or that
// it is final, and a history of all kinds shows no other.
func TestStatesAreDocumented(t *testing.T) {
	conform.Rule(t, "3-engine states", "each state is documented, and attempts, rounds and runs have no other")
	f, err := parser.ParseFile(token.NewFileSet(), "state.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || g.Doc == nil {
			continue
		}
		kind := ""
		for _, k := range []string{"Phases of a run", "States of a step's attempt", "States of a gate's round"} {
			if strings.HasPrefix(g.Doc.Text(), k) {
				kind = k[strings.LastIndex(k, " ")+1:]
				known[kind] = map[string]bool{}
			}
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if kind == "" {
				continue
			}
			known[kind][strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)] = true
			if v.Comment == nil || len(strings.TrimSpace(v.Comment.Text())) < len("final") {
				t.Errorf("%s: it does not say how it is entered or left", v.Names[0].Name)
			}
		}
	}
	if len(known["run"]) != 5 || len(known["attempt"]) != 8 || len(known["round"]) != 8 {
		t.Fatalf("states %v", known)
	}
	for seed := uint64(1); seed <= 20; seed++ {
		_, w := history(seed, false)
		for _, r := range w.st.Runs {
			if !known["run"][r.Phase] {
				t.Errorf("seed %d: run %s is %q", seed, r.ID, r.Phase)
			}
			for step, as := range r.Attempts {
				for _, a := range as {
					if !known["attempt"][a.State] {
						t.Errorf("seed %d: attempt %s.%d is %q", seed, step, a.N, a.State)
					}
				}
			}
			for gate, qs := range r.Rounds {
				for _, q := range qs {
					if !known["round"][q.State] {
						t.Errorf("seed %d: round %s#%d is %q", seed, gate, q.N, q.State)
					}
				}
			}
		}
	}
}

// TestApplyRefusesContradictions: Apply panics on a fact that contradicts the state, as DESIGN.md
// promises.
func TestApplyRefusesContradictions(t *testing.T) {
	flowOf := func() *Spec { return flow("x", aStep("a"), aGate("a", to(EndDone), onFail(EndFailed))) }
	failed := func(s *script) {
		s.done("a")
		s.judged("ga", OutcomeFail)
		s.want(s.r().Phase, RunFailed)
	}
	for _, c := range []struct {
		name   string
		before func(*script)
		fact   func(run string) Fact
		says   string
	}{
		{"a pass of what has not been judged", func(*script) {}, func(run string) Fact { return StepPassed{of: Of(run), Step: "a", N: 1} }, "step_passed: attempt a.1 is running"},
		{"a route of what has not been judged", func(*script) {}, func(run string) Fact { return StepRouted{of: Of(run), Step: "a", N: 1, To: EndDone} }, "step_routed: attempt a.1 is running"},
		{"a failed run begins", failed, func(run string) Fact { return RunBegan{of: Of(run)} }, "run_began: the run is failed"},
		{"a running run begins", func(*script) {}, func(run string) Fact { return RunBegan{of: Of(run)} }, "run_began: the run is running"},
	} {
		s := begin(t, "13-law contradictions", c.name, flowOf())
		c.before(s)
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "engine: ") || !strings.Contains(got, c.says) {
					t.Errorf("%s: panicked with %q, want %q", c.name, got, c.says)
				}
			}()
			s.st.Apply(s.now, c.fact(s.run))
		}()
	}
}
