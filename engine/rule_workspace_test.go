package engine

import (
	"fmt"
	"testing"
)

// TestWorkspace: a run has a worktree of its own, which its steps work in that name none, and no other run waits for.
func TestWorkspace(t *testing.T) {
	a, ga := ungated("a", to("b"), tree(""), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
	b, gb := ungated("b", to(EndDone), tree("own/"))
	w := flow("x", a, ga, b, gb, func(w *Spec) { w.Workspace = WorkspaceRun })
	s := begin(t, "", "", w)
	first := s.run
	s.do(RunRequested{Workflow: "x", Digest: "d-x", Parallel: true, By: Actor{Who: "ann"}})
	second := s.st.Order[1]
	s.writes()
	for _, run := range []string{first, second} {
		at := s.st.Runs[run].Current("a")
		if at == nil || at.Worktree != ".workflow/worktrees/"+run || at.Tree != at.Worktree || at.State != Running {
			t.Errorf("%s: %+v", run, at)
		}
	}
	s.do(ProcessEnded{Run: first, Key: first + "/a#1.1"})
	s.taken(first, "a")
	if at := s.st.Runs[first].Current("b"); at == nil || at.Worktree != "own" {
		t.Errorf("b: %+v", at)
	}
}

func TestWorkspaceOfAChildIsItsParents(t *testing.T) {
	k, gk := ungated("k", to(EndDone), tree(""))
	child := flow("sub", k, gk, func(w *Spec) { w.Workspace = WorkspaceRun })
	st, g := ungated("a", to(EndDone), func(s *Step) { s.Agent, s.Child = nil, child })
	for _, own := range []string{WorkspaceRun, ""} {
		w := flow("x", st, g, func(w *Spec) { w.Workspace = own })
		child.Link()
		s := begin(t, "", "", w)
		run := s.run
		s.writes()
		want := ""
		if own == WorkspaceRun {
			want = WorkspaceDir + "/" + run
		}
		for id, r := range s.st.Runs {
			if r.Child == nil {
				continue
			}
			if at := r.Current("k"); at == nil || at.Worktree != want {
				t.Errorf("%q: %s: %+v", own, id, at)
			}
		}
		if len(s.st.Runs) != 2 {
			t.Error(fmt.Sprint(s.st.Order))
		}
	}
}

func TestWorkspaceHoldsTaskFiles(t *testing.T) {
	for path, want := range map[string]string{"docs/tasks.jsonl": ".workflow/worktrees/x-1/docs/tasks.jsonl", ".workflow/backlog/t.jsonl": ".workflow/backlog/t.jsonl"} {
		if got := (&Run{Workspace: workspace(&Spec{Workspace: WorkspaceRun}, "x-1")}).below(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
		if got := (&Run{}).below(path); got != path {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := WorkspaceBranch(".workflow/worktrees/x-1"); got != "sluice/x-1" {
		t.Error(got)
	}
}

// taken ends the check of a step's first attempt, in which its work was taken, and carries out what is owed then.
func (s *script) taken(run, step string) {
	s.t.Helper()
	check := s.st.Runs[run].Procs[0]
	if check.Kind != ProcCheck {
		s.t.Fatalf("%s is not being checked: %+v", step, check)
	}
	s.do(ProcessEnded{Run: run, Key: check.Key, Check: &CheckResult{OK: true, Digest: "c1", Content: "t1"}})
	if s.st.Runs[run].Current("b") != nil && s.st.Runs[run].Current("b").State != Ready {
		s.t.Error("the next step was launched before the branch had moved")
	}
	s.writes()
}

// TestAdvanceIsOwed: what has passed is to go onto its branch before anything else of the run is launched, and no more once
// the step is undone.
func TestAdvanceIsOwed(t *testing.T) {
	a, ga := ungated("a", to("b"), tree(""), func(s *Step) { s.Signal = Signal{Type: SignalExit} })
	b, gb := ungated("b", to(EndDone), tree(""))
	s := begin(t, "", "", flow("x", a, ga, b, gb, func(w *Spec) { w.Workspace = WorkspaceRun }))
	s.writes()
	s.do(ProcessEnded{Run: s.run, Key: s.run + "/a#1.1"})
	check := s.st.Runs[s.run].Procs[0]
	s.do(ProcessEnded{Run: s.run, Key: check.Key, Check: &CheckResult{OK: true, Digest: "c1", Content: "t1"}})
	r := s.st.Runs[s.run]
	if len(r.Writes) != 1 || r.Writes[0].Step != "a" || r.Writes[0].N != 1 {
		t.Fatalf("owed: %+v", r.Writes)
	}
	if at := r.Current("b"); at == nil || at.State != Ready {
		t.Errorf("b: %+v", at)
	}
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	if len(s.st.Runs[s.run].Writes) != 0 {
		t.Errorf("an undone step still owes its branch: %+v", s.st.Runs[s.run].Writes)
	}
}
