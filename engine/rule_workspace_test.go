package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestWorkspace: a run has its own worktree, in which its steps work unless they name another, and
// no other run waits for it.
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

// taken ends the check that took the work of a step's first attempt, and carries out what is owed
// then.
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

// TestAdvanceIsOwed: passed work must move onto its branch before anything else of the run is
// launched, unless the step was undone.
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

// vetoable begins a -> b in the run's own worktree, passes both and has b's gate decided.
func vetoable(t *testing.T, sentence string, more ...func(*Gate)) *script {
	t.Helper()
	s := vetoableTo(t, sentence, "", nil, nil, more...)
	s.want(s.step("c"), "1 running")
	return s
}

// vetoableTo is vetoable with more steps. It ends while the branch still lacks the work of the
// named step.
func vetoableTo(t *testing.T, sentence, owed string, steps []*Step, others []*Gate, more ...func(*Gate)) *script {
	t.Helper()
	w := flow("x", aStep("a"), aGate("a", to("b"), append(gates(level(LevelNotify)), more...)...), aStep("b"), aGate("b", to("c"), level(LevelNotify)),
		aStep("c"), aGate("c", to(EndDone)), func(w *Spec) {
			w.Workspace, w.Steps, w.Gates = WorkspaceRun, append(w.Steps, steps...), append(w.Gates, others...)
		})
	for _, st := range w.Steps {
		st.Agent.Worktree = Text{}
	}
	s := begin(t, "9-one-tree veto", sentence, w)
	for _, step := range []string{"a", "b"} {
		s.writes()
		s.sentinel(step, StatusDone)
		s.exit(step, Exit{})
		s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{OK: true, Digest: "c-" + step, Content: "t-" + step}})
		s.judged("g"+step, OutcomePass)
		s.tell()
		s.later(31 * time.Second)
		s.scan()
		if step == owed {
			return s
		}
		s.writes()
	}
	return s
}

// branch returns the owed moves of branches, in order.
func (s *script) branch() (out []string) {
	for _, e := range s.owed(DoWrite) {
		if e.Write.Kind != "" {
			out = append(out, e.Key)
		}
	}
	return out
}

func TestLateVetoTakesTheBranchBack(t *testing.T) {
	s := vetoable(t, `"A late veto stops what was built on the work, salvages it, and moves the branch back"`)
	s.want(s.says("ga", OutcomeVeto), "")
	s.want(s.step("a"), "2 ready", fmt.Sprint(s.owes(DoStop, "x-1/c#1.1")), "true", fmt.Sprint(s.branch()), "[]")
	s.stopped() // not while a process is at work among the files
	s.want(fmt.Sprint(s.branch()), "[x-1/a#1.rewind]", s.step("a"), "2 ready")
	holder, held := s.st.Taken(s.spec).Holder(s.r().Workspace)
	s.want(fmt.Sprint(held), "true", holder.Step, "a", holder.Run, "x-1") // while its files go back
	if w := s.r().Writes[len(s.r().Writes)-1]; fmt.Sprint(w.With) != "[b.1]" || !w.Files {
		t.Errorf("%+v", w)
	}
	s.writes()
	s.want(s.step("a"), "2 running", fmt.Sprint(s.r().Moved), "[x-1/a#1.advance x-1/b#1.advance x-1/a#1.rewind]")
}

// TestLateVetoBeforeTheBranchMoved: a veto also cancels owed moves of the attempts it undoes.
func TestLateVetoBeforeTheBranchMoved(t *testing.T) {
	for _, on := range []string{"a", "side", EndDone, EndFailed} {
		for owed, with := range map[string]string{"a": "[]", "b": "[b.1]"} {
			var steps []*Step
			var others []*Gate
			if on == "side" {
				steps, others = []*Step{aStep("side")}, []*Gate{aGate("side", to(EndDone))}
			}
			s := vetoableTo(t, `"A late veto stops what was built on the work, salvages it, and moves the branch back"`, owed, steps, others, onFail(on))
			s.want(fmt.Sprint(s.branch()), "[x-1/"+owed+"#1.advance]")
			s.want(s.says("ga", OutcomeVeto), "")
			s.want(fmt.Sprint(s.branch()), "[x-1/a#1.rewind]")
			if w := s.r().Writes[len(s.r().Writes)-1]; fmt.Sprint(w.With) != with {
				t.Errorf("%s: %+v", on, w)
			}
			if why := s.st.Fault(s.spec); why != "" {
				t.Errorf("%s: %s", on, why)
			}
		}
	}
}

// sharing begins p -> a list whose tasks work in the run's own worktree, and takes p through its
// window.
func sharing(t *testing.T, tasks string, list List) *listed {
	t.Helper()
	p, gp := aStep("p"), aGate("p", to("work"), level(LevelNotify))
	a, ga := aStep("a"), aGate("a", to("b"), level(LevelNotify))
	b, gb := ungated("b", to(EndDone))
	work := aList(list, func(st *Step) { st.Child = flow("sub", a, ga, b, gb) })
	for _, st := range []*Step{p, a, b} {
		st.Agent.Worktree, st.Signal = Text{}, Signal{Type: SignalExit}
	}
	work.Child.Workspace = WorkspaceRun
	work.Child.Link()
	l := tasksOf(t, "9-one-tree veto", `"A late veto stops what was built on the work, salvages it, and moves the branch back"`, tasks, p, gp, work, listGate(),
		func(w *Spec) { w.Workspace = WorkspaceRun })
	l.passes("x-1", "p")
	return l
}

// passes takes a step of a run through its gate's window.
func (l *listed) passes(run, step string) {
	l.t.Helper()
	at := func(state string) bool {
		r := l.st.Runs[run]
		return r != nil && r.Current(step) != nil && r.Current(step).State == state
	}
	for !at(Running) {
		l.drive(1)
	}
	for n := 0; !at(Passed); n++ {
		if n > 100 {
			l.t.Fatalf("%s/%s does not pass: %+v", run, step, l.st.Runs[run].Current(step))
		}
		for _, e := range l.st.Owed(l.spec) {
			switch {
			case e.Kind == DoRun && e.Run == run && e.Proc.Kind == ProcCheck:
				l.do(ProcessEnded{Run: run, Key: e.Key, Check: &CheckResult{OK: true, Digest: "d-" + run, Content: "t-" + run}})
			case e.Run == run && e.Kind != DoWatch:
				l.carry(e)
			}
		}
		l.later(31 * time.Second)
		l.scan()
	}
}

// begins makes the list start a task's run, while no process ends.
func (l *listed) begins(run string) {
	l.t.Helper()
	for n := 0; l.st.Runs[run] == nil; n++ {
		if n > 100 {
			l.t.Fatalf("%s does not begin", run)
		}
		l.others()
		l.later(time.Second)
		l.do(Ticked{})
	}
}

// others carries out once what is owed, except processes.
func (l *listed) others() {
	l.t.Helper()
	for _, e := range l.st.Owed(l.spec) {
		if e.Kind != DoRun {
			l.carry(e)
		}
	}
}

// rewind returns the rewind that a run owes.
func (l *listed) rewind(run string) *Write {
	l.t.Helper()
	for _, w := range l.st.Runs[run].Writes {
		if w.Kind == WriteRewind {
			return w
		}
	}
	l.t.Fatalf("%s owes no rewind: %+v", run, l.st.Runs[run].Writes)
	return nil
}

// rewound reports whether a rewind can be carried out now.
func (l *listed) rewound() bool {
	return slices.ContainsFunc(l.st.Owed(l.spec), func(e Effect) bool { return e.Kind == DoWrite && e.Write.Kind == WriteRewind })
}

// TestLateVetoWaitsForChildren: a process of a child run works in its parent's worktree.
func TestLateVetoWaitsForChildren(t *testing.T) {
	l := sharing(t, "A", List{})
	for len(l.launches()) == 0 {
		l.drive(1)
	}
	l.want(l.says("gp", OutcomeVeto), "")
	l.want(fmt.Sprint(l.rewind("x-1").Files, l.rewound(), l.owes(DoStop, "x-1.A.1/a#1.1")), "true false true")
	l.st.Changed(l.spec)
	l.stopped()
	l.want(fmt.Sprint(l.rewound(), slices.Contains(l.st.Changed(l.spec), Debtor{ID: "x-1"})), "true true")
}

// besideB has step a of task A passed, and task B at work in the same worktree.
func besideB(t *testing.T) *listed {
	t.Helper()
	l := sharing(t, "A B", List{MaxParallel: 2})
	l.begins("x-1.B.1")
	l.passes("x-1.A.1", "a")
	for l.st.Runs["x-1.B.1"].Current("a").State != Running {
		l.drive(1)
	}
	return l
}

// TestLateVetoAfterAnotherTaskWasAborted: its process is not gone yet when the files must be
// restored.
func TestLateVetoAfterAnotherTaskWasAborted(t *testing.T) {
	l := besideB(t)
	l.do(AbortRequested{Run: "x-1.B.1", By: Actor{Who: "ann"}})
	l.want(l.says("ga", OutcomeVeto, func(a *Answered) { a.Run = "x-1.A.1" }), "")
	l.want(fmt.Sprint(l.rewind("x-1.A.1").Files, l.rewound(), l.owes(DoStop, "x-1.B.1/a#1.1")), "true false true")
	l.st.Changed(l.spec)
	l.stopped()
	l.want(fmt.Sprint(l.rewound(), slices.Contains(l.st.Changed(l.spec), Debtor{ID: "x-1.A.1"})), "true true")
}

// TestLateVetoBesideAnotherTask: the files stay while another task's run works among them.
func TestLateVetoBesideAnotherTask(t *testing.T) {
	l := besideB(t)
	l.want(l.says("ga", OutcomeVeto, func(a *Answered) { a.Run = "x-1.A.1" }), "")
	// the branch does not wait for the other's work
	l.want(fmt.Sprint(l.rewind("x-1.A.1").Files, l.rewound()), "false true")
}

// TestNobodyIsLaunchedBesideARewind: not even in another task's run of the same worktree.
func TestNobodyIsLaunchedBesideARewind(t *testing.T) {
	l := sharing(t, "A B", List{MaxParallel: 2})
	l.begins("x-1.B.1")
	l.passes("x-1.A.1", "a")
	l.passes("x-1.B.1", "a")
	l.others()
	l.want(l.st.Runs["x-1.A.1"].Current("b").State, Running, l.st.Runs["x-1.B.1"].Current("b").State, Ready)
	l.want(l.says("ga", OutcomeVeto, func(a *Answered) { a.Run = "x-1.A.1" }), "")
	l.stopped()
	owed := func(kind string) []Effect {
		return slices.DeleteFunc(l.st.Owed(l.spec), func(e Effect) bool { return e.Kind != kind })
	}
	l.want(fmt.Sprint(l.rewind("x-1.A.1").Files, len(owed(DoRun))), "true 0")
	l.others()
	l.want(fmt.Sprint(len(owed(DoRun))), "1")
}

func TestLateVetoOfAnEndedRun(t *testing.T) {
	s := vetoable(t, `"A late veto stops what was built on the work, salvages it, and moves the branch back"`, onFail(EndFailed))
	s.want(s.says("ga", OutcomeVeto), "")
	s.want(s.r().Phase, RunFailed)
	s.stopped()
	s.want(fmt.Sprint(s.branch()), "[x-1/a#1.rewind]")
	s.writes()
	s.want(fmt.Sprint(s.branch()), "[]")
}

// TestOrdinaryFailureLeavesTheBranch: passed work stays on the branch when a later gate sends the
// work back.
func TestOrdinaryFailureLeavesTheBranch(t *testing.T) {
	s := vetoable(t, `"A late veto stops what was built on the work, salvages it, and moves the branch back"`)
	s.sentinel("c", StatusDone)
	s.exit("c", Exit{})
	s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{OK: true, Digest: "c-c", Content: "t-c"}})
	s.judged("gc", OutcomeFail)
	s.want(fmt.Sprint(s.branch()), "[]")
}

func TestOnDone(t *testing.T) {
	conform.Rule(t, "9-one-tree on_done", "a landing is owed before a run completes, and its end says why it could not be done")
	for _, why := range []string{"", "main has moved"} {
		w := one(level(LevelHuman))
		w.Workspace, w.OnDone = WorkspaceRun, OnDone{Land: LandSquash}
		s := begin(t, "", "", w)
		s.done("a")
		s.want(s.says("ga", OutcomePass), "")
		s.want(s.r().Phase, RunRunning)
		owed := s.owed(DoWrite)
		if len(owed) != 1 || owed[0].Write.Kind != WriteLand {
			t.Fatalf("owed: %+v", owed)
		}
		s.do(FileWritten{Run: s.run, ID: owed[0].Key, Why: why})
		want := ""
		if why != "" {
			want = "not landed: " + why
		}
		s.want(s.r().Phase, RunCompleted, s.r().EndWhy, want, fmt.Sprint(len(s.owed(DoWrite))), "0")
		s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
		s.done("a")
		s.want(s.says("ga", OutcomePass), "")
		if owed := s.owed(DoWrite); len(owed) != 1 || owed[0].Write.Kind != WriteLand { // and once more
			t.Errorf("owed after a retry: %+v", owed)
		}
	}
}

// TestOnDoneAfterALateVeto: vetoed work is not landed.
func TestOnDoneAfterALateVeto(t *testing.T) {
	w := one(level(LevelNotify))
	w.Workspace, w.OnDone = WorkspaceRun, OnDone{Land: LandSquash}
	s := begin(t, "", "", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.tell()
	s.later(31 * time.Second)
	s.scan()
	s.want(fmt.Sprint(s.r().Landing), "true")
	s.want(s.says("ga", OutcomeVeto), "")
	s.want(fmt.Sprint(s.r().Landing, len(s.branch())), "false 0")
	s.done("a")
	s.want(s.gate("ga"), "2 reviewing")
}

func TestStandInsLandNothing(t *testing.T) {
	w := one(level(LevelHuman))
	w.Workspace, w.OnDone = WorkspaceRun, OnDone{Land: LandSquash}
	s := &script{world: newWorld(t, w)}
	s.do(RunRequested{Workflow: "x", Digest: "d-x", Stubs: []byte("{}"), By: Actor{Who: "ann"}})
	s.run = s.st.Order[0]
	s.done("a")
	s.want(s.says("ga", OutcomePass), "")
	s.want(s.r().Phase, RunCompleted)
}
