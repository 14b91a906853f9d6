package engine

import (
	"fmt"
	"testing"

	"sluice/tools/conform"
)

func reads(s *Step) { s.Agent.Reads, s.Signal = true, Signal{Type: SignalExit} }

func live(r *Run) (n int) {
	for _, p := range r.Procs {
		if p.Kind == ProcStep {
			n++
		}
	}
	return n
}

// TestRuleReadersShareAWorktree: any number of read-only steps run at once in a worktree, beside
// the one that works there; slots count.
func TestRuleReadersShareAWorktree(t *testing.T) {
	conform.Rule(t, "13-law reads", `"looking at one folder in parallel": "steps with `+"`agent: {reads: true}`"+`, see the taken tree read-only and so share it": ten of one folder, and one that works there, are at work at once`)
	var more []any
	var to10 []string
	for i := range 10 {
		st, g := ungated(fmt.Sprint("r", i), to(EndDone), tree("w"), reads)
		more, to10 = append(more, st, g), append(to10, st.ID)
	}
	a, ga := ungated("a", to(append(to10, "w")...), tree("w"), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
	wr, gw := ungated("w", to(EndDone), tree("w"), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
	w := flow("x", append([]any{a, ga, wr, gw}, more...)...)
	s := begin(t, "", "", w)
	s.config(func(c *Config) { c.MaxParallel = 11 })
	if !w.Looked || !w.Checks(a, false) {
		t.Error("what a has done would not be taken, and nobody could look at it")
	}
	s.exit("a", Exit{})
	s.checked()
	if n := live(s.r()); n != 11 {
		t.Fatalf("%d of 11 are at work", n)
	}
	for _, p := range s.r().Procs {
		if (p.Tree == "") != (p.Step != "w") {
			t.Errorf("%s holds %q", p.Key, p.Tree)
		}
	}
	if why := s.st.Fault(s.spec); why != "" {
		t.Error(why)
	}
}

// TestRuleReviewOfWhatWasTaken: a review of completely taken work begins while another works in a
// folder that a person had released; otherwise the step keeps its folder to its verdict.
func TestRuleReviewOfWhatWasTaken(t *testing.T) {
	conform.Rule(t, "13-law reads review", `"looking at one folder in parallel": "reviewers … see the taken tree read-only and so share it": they wait for nobody in the folder, while their step keeps it to its verdict`)
	for _, apart := range []bool{true, false} {
		a, ga := ungated("a", to("b", "c"), tree("v"), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
		b := aStep("b", tree("w"), func(s *Step) { s.Signal = Signal{Type: SignalExit}; s.Gates = []string{"G", "G2"} })
		gb := &Gate{ID: "G", Step: "b", Reviewer: Reviewer{Level: LevelHuman}, OnFail: "b", OnExhausted: Human, MaxRetries: 3, RetryContext: "rc/G-{n}.md"}
		second := &Gate{ID: "G2", Step: "b", Reviewer: Reviewer{Level: LevelAuto, AgentType: "rev"}, OnPass: to(EndDone), OnFail: "b", OnExhausted: Human, MaxRetries: 3, RetryContext: "rc/G2-{n}.md"}
		c, gc := ungated("c", to(EndDone), tree("w"), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
		s := begin(t, "", "", flow("x", a, ga, b, gb, second, c, gc))
		s.exit("a", Exit{})
		s.exit("b", Exit{})
		for _, p := range s.r().Procs {
			if p.Kind == ProcCheck {
				s.do(ProcessEnded{Run: s.run, Key: p.Key, Check: &CheckResult{OK: true, Digest: "d", Apart: apart}})
			}
		}
		if s.r().Procs.Of(s.run+"/c#1.1") == nil {
			t.Fatal("c does not work while a person is asked")
		}
		s.says("G", OutcomePass, func(a *Answered) { a.DigestNow = "d" })
		if p := s.r().Procs.Of(s.run + "/G2#1.1"); (p != nil) != apart || p != nil && p.Tree != "" {
			t.Errorf("apart %v: the review beside c: %+v", apart, p)
		}
	}
}

// TestRuleReaderIsNotTakenOver: there is no folder in which a person could continue.
func TestRuleReaderIsNotTakenOver(t *testing.T) {
	a, ga := ungated("a", to(EndDone), reads)
	s := begin(t, "", "", flow("x", a, ga))
	s.has(s.takes("a"), "only reads")
}

// TestRuleReaderMovesNoBranch: a read-only step produces no work.
func TestRuleReaderMovesNoBranch(t *testing.T) {
	a, ga := ungated("a", to(EndDone), tree(""), reads)
	s := begin(t, "", "", flow("x", a, ga, func(w *Spec) { w.Workspace = WorkspaceRun }))
	s.exit("a", Exit{})
	for _, p := range s.r().Procs {
		s.do(ProcessEnded{Run: s.run, Key: p.Key, Check: &CheckResult{OK: true, Digest: "d", Content: "c"}})
	}
	if s.r().Current("a").State != Passed || len(s.r().Writes) > 0 {
		t.Errorf("%s %+v", s.step("a"), s.r().Writes)
	}
}

// TestRuleReaderWaitsForItsOwnProcess: a relaunch waits until the step's earlier process is gone.
func TestRuleReaderWaitsForItsOwnProcess(t *testing.T) {
	a, ga := ungated("a", to(EndDone), reads)
	s := begin(t, "", "", flow("x", a, ga))
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	if n := live(s.r()); n != 1 {
		t.Errorf("%d processes", n)
	}
	s.stopped()
	if s.r().Procs.Of(s.run+"/a#2.1") == nil {
		t.Errorf("%+v", s.r().Procs)
	}
}
