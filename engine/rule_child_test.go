package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/tools/conform"
)

// twoStepList is a list whose tasks are each done by a run of a two-step workflow.
func twoStepList(t *testing.T, rule, sentence, tasks string, e List, limits Limits, more ...any) *listed {
	t.Helper()
	a, ga := ungated("a", to("b"))
	b, gb := ungated("b", to(EndDone))
	a.Signal, b.Signal = Signal{Type: SignalExit}, Signal{Type: SignalExit}
	tree := Text{Source: "w", Eval: func(env *Env) (string, error) { return fmt.Sprint("w-", env.Task["id"]), nil }}
	a.Agent.Worktree, b.Agent.Worktree = tree, tree
	list := aList(e, func(st *Step) {
		st.Child = flow("sub", a, ga, b, gb, func(w *Spec) { w.Limits = limits })
		st.Child.Link()
	})
	return tasksOf(t, rule, sentence, tasks, append([]any{list, listGate(most(1), exhausted(EndFailed))}, more...)...)
}

func TestRule34Counts(t *testing.T) {
	l := twoStepList(t, "8-semantics 34", "each try counts one in the parent's max_steps, the list none; what a try's run does counts in its own", "A B", List{Attempts: 2}, Limits{})
	l.all()
	if r, k := l.r(), l.st.Runs["x-1.A.1"]; r.Begun != 2 || k.Begun != 2 {
		t.Errorf("%d of the parent, %d of a child", r.Begun, k.Begun)
	}
	l.want(l.r().Phase, RunCompleted)

	l = twoStepList(t, "", "", "A B", List{Attempts: 2}, Limits{MaxSteps: 1})
	l.all()
	l.want(l.st.Runs["x-1.A.1"].Phase, RunAborted, l.st.Runs["x-1.A.1"].EndCause, causeLimit, l.r().List.Task("A").State, TaskFailed, l.r().Phase, RunFailed)
	if n := l.r().Begun; n != 4 {
		t.Errorf("%d: a try that its own limit has ended is one", n)
	}

	l = twoStepList(t, "8-semantics 32", "a list's next try is no more than max_steps allows; human: paused, and resumed with the same amount once more", "A B C", List{Attempts: 2}, Limits{},
		func(w *Spec) { w.Limits = Limits{MaxSteps: 2, OnHit: map[string]string{"max_steps": Human}} })
	l.drive(5000)
	l.want(fmt.Sprint(l.r().Paused), "true", l.r().List.Task("C").State, TaskTodo)
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.r().Phase, RunCompleted)
}

// launches returns the launches owed of a run's children.
func (l *listed) launches() (out []string) {
	for _, e := range l.st.Owed(l.spec) {
		if e.Kind == DoRun && e.Run != "x-1" {
			out = append(out, e.Key)
		}
	}
	return out
}

func TestRule29Children(t *testing.T) {
	conform.Rule(t, "001 pause", "the one at work ends, the next is not begun until the run is resumed")
	conform.Rule(t, "000 resume.paused", "a task's run does not go on by itself either")
	l := twoStepList(t, "8-semantics 29", "pause withholds child runs and their launches; what runs goes on and its results are taken in", "A B C", List{Attempts: 2, MaxParallel: 2}, Limits{})
	for len(l.launches()) < 2 {
		l.drive(1)
	}
	l.want(fmt.Sprint(l.launches()), "[x-1.A.1/a#1.1 x-1.B.1/a#1.1]")
	l.do(PauseRequested{Run: "x-1", By: Actor{Who: "ann"}})
	for _, task := range []string{"A", "B"} { // both are at work, and end
		l.do(ProcessEnded{Run: "x-1." + task + ".1", Key: "x-1." + task + ".1/a#1.1", Answer: json.RawMessage(`{"status":"done"}`)})
	}
	l.drive(5000)
	l.want(fmt.Sprint(l.launches()), "[]", l.st.Runs["x-1.A.1"].Current("a").State, Passed, l.st.Runs["x-1.A.1"].PausedWhy, PausedParent, fmt.Sprint(l.st.Runs["x-1.C.1"] == nil), "true")
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.all()
	l.want(l.r().Phase, RunCompleted)

	// One that ends during the pause is handled; the next is not started.
	l = twoStepList(t, "", "", "A B", List{Attempts: 2}, Limits{})
	for len(l.launches()) == 0 || l.launches()[0] != "x-1.A.1/b#1.1" {
		l.drive(1)
	}
	l.do(PauseRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.do(ProcessEnded{Run: "x-1.A.1", Key: "x-1.A.1/b#1.1", Answer: json.RawMessage(`{"status":"done"}`)})
	l.drive(5000)
	l.want(l.r().List.Task("A").State, TaskDone, l.status("A"), TaskDone, l.r().List.Task("B").State, TaskTodo, fmt.Sprint(len(l.launches())), "0")
}

func TestLimitWaitOfATry(t *testing.T) {
	conform.Rule(t, "8-semantics 19", "a usage limit is waited for within the try, which is not used by it; the tasks beside it go on")
	l := twoStepList(t, "", "", "A B", List{Attempts: 1, MaxParallel: 2}, Limits{})
	for len(l.launches()) < 2 {
		l.drive(1)
	}
	reset := l.now.Add(3 * time.Hour)
	l.do(ProcessEnded{Run: "x-1.A.1", Key: "x-1.A.1/a#1.1", Exit: Exit{Class: ClassLimit, ResumeAt: reset}})
	l.drive(5000) // up to the next thing that is due within a minute
	a := l.st.Runs["x-1.A.1"].Current("a")
	l.want(l.r().List.Task("B").State, TaskDone, l.r().List.Task("A").State, TaskDoing, a.State, Ready, fmt.Sprint(a.LimitWait), "true", fmt.Sprint(a.NotBefore.Equal(reset)), "true")
	l.now = reset
	l.do(Ticked{})
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(l.r().List.Task("A").Runs), "1")
}

// TestListInList: a task's run has a list of its own; the task is done when that is.
func TestListInList(t *testing.T) {
	own := Text{Source: "own", Eval: func(env *Env) (string, error) { return fmt.Sprint("inner-", env.Task["id"], ".json"), nil }}
	inner := aList(List{Attempts: 2, Tasks: own}, func(st *Step) { st.ID, st.Name, st.Gates = "stories", "stories", []string{"gwork"} })
	ig := listGate(most(1), exhausted(EndFailed))
	ig.Step = "stories"
	outer := aList(List{Attempts: 2}, func(st *Step) {
		st.Child = flow("epic", inner, ig)
		inner.Child.Outer = st.Child
		st.Child.Link()
	})
	l := tasksOf(t, "1-language task lists", "the workflow of a task may have a list of its own: it is the child's, with its file; the child is done when it is", "A B", outer, listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, try int) string {
		// the whole of the first try at B
		if task == "J" && l.st.Runs["x-1.B.1"] != nil && l.st.Runs["x-1.B.2"] == nil {
			return "failed"
		}
		return "done"
	}
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(l.r().List.Task("B").Tries), "1", l.books["inner-B.json"].status("J"), TaskDone)
	l.want(l.did(), "I.1 done, J.1 done, I.1 done, J.1 failed, J.2 failed, J.1 done")
	for _, id := range []string{"x-1.A.1.I.1", "x-1.A.1.J.1", "x-1.B.1.J.2", "x-1.B.2.J.1"} {
		if l.st.Runs[id] == nil {
			t.Errorf("no run %s: %v", id, l.st.Order)
		}
	}
	l.want(l.st.Runs["x-1.B.2.J.1"].Folder(), "x-1/work.1/B.2/stories.1/J.1")
	// A pause of the top, and its end, reach the innermost; so does an abort, in the same event.
	l = tasksOf(t, "", "", "A", outer, listGate())
	for l.st.Runs["x-1.A.1.I.1"] == nil {
		l.drive(1)
	}
	l.do(PauseRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.want(l.st.Runs["x-1.A.1.I.1"].PausedWhy, PausedParent)
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.want(fmt.Sprint(l.st.Runs["x-1.A.1.I.1"].Paused), "false")
	l.do(AbortRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.want(l.st.Runs["x-1.A.1.I.1"].Phase, RunAborted, l.st.Runs["x-1.A.1"].Phase, RunAborted)
}

// TestResumeOfAChildAlone: a run whose parent is paused does not continue, whoever paused it first.
func TestResumeOfAChildAlone(t *testing.T) {
	conform.Rule(t, "8-semantics 29", "a child that was paused by itself is not resumed while its parent is paused; and stays paused when that goes on")
	l := twoStepList(t, "", "", "A", List{Attempts: 1}, Limits{})
	for len(l.launches()) == 0 {
		l.drive(1)
	}
	by := Actor{Who: "ann"}
	l.do(PauseRequested{Run: "x-1.A.1", By: by})
	l.do(PauseRequested{Run: "x-1", By: by})
	l.has(ignored(l.do(ResumeRequested{Run: "x-1.A.1", By: by})), "sluice resume x-1")
	l.do(ResumeRequested{Run: "x-1", By: by})
	l.want(l.st.Runs["x-1.A.1"].PausedWhy, "user", fmt.Sprint(l.r().Paused), "false")
	l.do(ResumeRequested{Run: "x-1.A.1", By: by})
	l.all()
	l.want(l.r().Phase, RunCompleted)
}

// TestHookOfATry: the hook at the end of a task's run begins once the task has its result, and the
// next task after the hook.
func TestHookOfATry(t *testing.T) {
	conform.Rule(t, "8-semantics 34", "a task's run is over when its processes are gone, its after_run hook among them")
	l := twoStepList(t, "", "", "A B", List{Attempts: 1}, Limits{})
	l.specs["d-x"].graph.steps["work"].Child.AfterRun = &Command{Shell: "true"}
	for l.st.Runs["x-1.A.1"] == nil || l.st.Runs["x-1.A.1"].Live() {
		l.drive(1)
	}
	for range 20 { // all but the hook
		for _, e := range l.st.Owed(l.spec) {
			if e.Kind != DoRun || e.Proc.Kind != ProcHook {
				l.carry(e)
				break
			}
		}
	}
	l.want(l.r().List.Task("A").State, TaskDone, fmt.Sprint(l.st.Runs["x-1.B.1"] == nil), "true", fmt.Sprint(len(l.st.Runs["x-1.A.1"].Procs)), "1")
	l.all()
	l.want(l.r().Phase, RunCompleted, fmt.Sprint(l.st.Runs["x-1.B.1"].Hooked), "true")
}

// TestListIsWritten: the file shows what is at work and what is done within a second, is not
// written more often than that, and is complete before the list is over.
func TestListIsWritten(t *testing.T) {
	conform.Rule(t, "001 written", "doing, then done, while the next is doing; once a second; all of it at the end")
	l := tasksOf(t, "", "", "A B C", aList(List{Attempts: 1}), listGate())
	waits := func(run string) { // carry out everything except the run's own work, for a second
		for range 100 {
			if owed := slices.DeleteFunc(l.st.Owed(l.spec), func(e Effect) bool { return e.Run == run && e.Kind == DoRun && e.Proc.Kind == ProcStep }); len(owed) > 0 {
				l.carry(owed[0])
				continue
			}
			if r := l.st.Runs[run]; r != nil && len(r.Procs) > 0 {
				break
			}
			l.drive(1)
		}
		l.now = l.now.Add(time.Duration(WriteEvery))
		l.do(Ticked{})
		for range 5 {
			for _, e := range l.owed(DoSave) {
				l.carry(e)
			}
		}
	}
	waits("x-1.A.1")
	l.want(l.status("A"), TaskDoing, l.status("B"), TaskTodo)
	waits("x-1.B.1")
	l.want(l.status("A"), TaskDone, l.status("B"), TaskDoing, l.status("C"), TaskTodo)
	l.all()
	l.want(l.status("C"), TaskDone, l.r().Phase, RunCompleted)

	l = tasksOf(t, "", "", "A B C", aList(List{Attempts: 1}), listGate())
	var wrote []time.Time
	for l.r().CurrentRound("gwork") == nil {
		l.drive(1)
		if at := l.r().List.Wrote; !at.IsZero() && (len(wrote) == 0 || !at.Equal(wrote[len(wrote)-1])) {
			wrote = append(wrote, at)
		}
	}
	for i := 1; i < len(wrote); i++ {
		if wrote[i].Sub(wrote[i-1]) < time.Duration(WriteEvery) {
			t.Errorf("written at %v", wrote)
		}
	}
	l.want(l.status("A"), TaskDone, l.status("B"), TaskDone, l.status("C"), TaskDone, fmt.Sprint(len(wrote) > 1), "true")
}

// TestHookBetweenIterations: the hook after an iteration's step has ended before the task is done,
// and before the next one begins.
func TestHookBetweenIterations(t *testing.T) {
	conform.Rule(t, "001 hooks.between", "the hook of A is at work: B is not begun; each has one")
	l := tasksOf(t, "", "", "A B", aList(List{Attempts: 1}), listGate())
	l.specs["d-x"].graph.steps["work"].Child.AfterStep = &Command{Shell: "make check"}
	hooks := func() (out []string) {
		for _, e := range l.st.Owed(l.spec) {
			if e.Kind == DoRun && e.Proc.Kind == ProcHook {
				out = append(out, e.Run)
			}
		}
		return out
	}
	for range 500 {
		if len(hooks()) > 0 {
			break
		}
		l.drive(1)
	}
	for range 50 { // all but the hook
		for _, e := range l.st.Owed(l.spec) {
			if e.Kind != DoRun || e.Proc.Kind != ProcHook {
				l.carry(e)
				break
			}
		}
	}
	l.want(fmt.Sprint(hooks()), "[x-1.A.1]", l.r().List.Task("A").State, TaskDoing, l.status("A"), TaskDoing, fmt.Sprint(l.st.Runs["x-1.B.1"] == nil), "true")
	l.all()
	l.want(l.r().Phase, RunCompleted, l.did(), "A.1 done, A hook doing, B.1 done, B hook todo")
	for _, id := range []string{"x-1.A.1", "x-1.B.1"} {
		if !l.st.Runs[id].Attempts["work"][0].Hooked {
			t.Errorf("%s had no hook", id)
		}
	}
}

// TestOwnWordOfAFailedList: a person has passed a list whose file is missing; its own report is
// nevertheless no pass.
func TestOwnWordOfAFailedList(t *testing.T) {
	first := listGate(most(1), exhausted(Human), func(g *Gate) { g.NextGate = "own" })
	own := listGate(most(1), exhausted(EndFailed), func(g *Gate) { g.ID, g.RetryContext = "own", "rc/own-{n}.md" })
	l := tasksOf(t, "1-language task lists", "from: step passes if all are done: of a list that has failed it does not, whoever passed the gate before it", "A",
		aList(List{Attempts: 1}, func(st *Step) { st.Gates = []string{"gwork", "own"} }), first, own)
	l.gone = true
	l.drive(5000)
	l.want(l.r().CurrentRound("gwork").State, OnHuman)
	l.do(Answered{Gate: "gwork", Run: "x-1", Outcome: OutcomePass, Written: l.now, By: Actor{Who: "ann"}})
	l.all()
	l.want(l.r().Phase, RunFailed, l.r().EndWhy, "own: fail")
}

// TestEndWhileUnread: a child run ended while its parent's spec could not be read; the parent
// handles that when it continues.
func TestEndWhileUnread(t *testing.T) {
	l := twoStepList(t, "8-semantics 37", "what became of child runs while the spec could not be read is taken in at the resume", "A", List{Attempts: 1}, Limits{})
	for len(l.launches()) == 0 {
		l.drive(1)
	}
	w := l.specs["d-x"]
	l.specs["d-x"] = nil
	l.do(SpecUnread{Run: "x-1", Why: "a newer release"})
	l.do(AbortRequested{Run: "x-1.A.1", By: Actor{Who: "ann"}})
	l.do(ProcessEnded{Run: "x-1.A.1", Key: "x-1.A.1/a#1.1", Exit: Exit{Stopped: true}})
	l.want(l.r().List.Task("A").State, TaskDoing)
	l.specs["d-x"] = w
	l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
	l.want(l.r().List.Task("A").State, TaskBlocked)
	l.all()
}

// TestIDsOfChildren: no two runs ever have one id, whatever tasks are called: a launch of an id that was used before would
// count as the one that has ended.
func TestIDsOfChildren(t *testing.T) {
	w := &Spec{Steps: []*Step{{ID: "prep"}, {ID: "1.x"}}}
	var of map[string]string
	deep := false
	var names func(id string, depth int)
	names = func(parent string, depth int) {
		for _, name := range []string{"1", "1.1", "1.1.1", "1._1.1", "1._1", "x", "1.x", "x.1", "x.1.x", "x.1.1", "_.x", "prep", "prep-2", "x._.1", "x.__1.1"} {
			for n := 1; n <= 2; n++ {
				for _, task := range []string{name, ""} {
					if task == "" && w.Step(name) == nil {
						continue
					}
					id, who := fmt.Sprintf("%s.%s.%d", parent, inRunID(w, name, task, deep), n), fmt.Sprintf("%s > %s (task %q) %d", of[parent], name, task, n)
					if of[id] != "" {
						t.Errorf("%s is of %s and of %s", id, of[id], who)
					}
					if of[id] = who; depth > 1 {
						names(id, depth-1)
					}
				}
			}
		}
	}
	for _, depth := range []int{1, 3} {
		of, deep = map[string]string{}, depth > 1
		names("w-1", depth)
	}
	if got := inRunID(w, "T1.1.1", "T1.1.1", false); got != "T1.1.1" {
		t.Errorf("%s: an id that nobody can mistake changed", got)
	}
}

// TestIDOfAForgottenRun: a task whose run could be called as one that the state no longer has gets a run of its own.
func TestIDOfAForgottenRun(t *testing.T) {
	one, g := ungated("one", to(EndDone))
	one.Signal = Signal{Type: SignalExit}
	prep, gp := ungated("prep", to("work"), func(st *Step) { st.Agent, st.Child = nil, flow("p", one, g) })
	prep.Child.Link()
	tasks := "prep-2!1"
	for i := range KeepChildren + 2 {
		tasks += fmt.Sprintf(" T%d!2", i)
	}
	l := tasksOf(t, "", "", tasks+" prep!3", prep, gp, aList(List{Attempts: 1}), listGate()).all()
	had := map[string]bool{}
	for _, f := range l.log {
		if f, ok := f.(RunStarted); ok {
			if had[f.Run] {
				t.Errorf("two runs are called %s", f.Run)
			}
			had[f.Run] = true
		}
	}
	l.want(fmt.Sprint(len(had)), fmt.Sprint(KeepChildren+6), l.r().Phase, RunCompleted)
}
