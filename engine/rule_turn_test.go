package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// turnsOf returns the turn of each run of a task, in order.
func (l *listed) turnsOf() string {
	var out []string
	for _, f := range l.log {
		if r, ok := f.(RunStarted); ok && r.Child != nil {
			out = append(out, fmt.Sprintf("%s.%d:%d", r.Child.Task, r.Child.Try, r.Child.Turn))
		}
	}
	return strings.Join(out, " ")
}

// TestListTurns: each iteration advances the turn, whatever the result of the one before.
func TestListTurns(t *testing.T) {
	l := tasksOf(t, "001 odd-even", "the iterations of a list are counted, each once: by that the agents of a role take turns", "A B C D", aList(List{Attempts: 3}), listGate()).all()
	l.want(l.turnsOf(), "A.1:0 B.1:1 C.1:2 D.1:3")

	// A failed iteration has had its turn.
	l = tasksOf(t, "001 turns", "an iteration that failed has had its turn", "A B C", aList(List{Attempts: 2}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, try int) string {
		return map[bool]string{true: "failed", false: "done"}[task == "A" && try == 1]
	}
	l.all()
	l.want(l.turnsOf(), "A.1:0 A.2:1 B.1:2 C.1:3")

	// The list is sent back with another task: it continues where it was.
	l = tasksOf(t, "", "", "A B", aList(List{Attempts: 2}), aGate("work", to(EndDone)))
	for l.gate("gwork") != "1 reviewing" {
		l.drive(1)
	}
	key := l.r().CurrentRound("gwork").Key
	l.write("A B C")
	l.file[0].Status, l.file[1].Status = TaskDone, TaskDone
	l.do(ProcessEnded{Run: l.run, Key: key, Verdict: &Judgement{Outcome: OutcomeFail, Feedback: "one more"}})
	l.all()
	if got := l.turnsOf(); !strings.HasPrefix(got, "A.1:0 B.1:1 ") || !strings.Contains(got, "C.1:2") {
		t.Errorf("turns %s", got)
	}
}

// TestListTurnsOutliveTheirTasks: a task removed from the file has had its turn, and one that
// returns under the same name is another run in another folder.
func TestListTurnsOutliveTheirTasks(t *testing.T) {
	l := tasksOf(t, "001 turns", "tasks that are taken out of the file have had their turns", "A B C", aList(List{Attempts: 2}), listGate())
	rest := func(after, tasks string) { // paused, so that a person's edits are accepted
		for l.st.Runs[after] == nil {
			l.drive(1)
		}
		l.do(PauseRequested{Run: "x-1", By: ann})
		l.drive(500)
		l.write(tasks)
		l.do(ResumeRequested{Run: "x-1", By: ann})
	}
	rest("x-1.A.1", "B C")
	rest("x-1.B.1", "A C")
	l.all()
	l.want(l.turnsOf(), "A.1:0 B.1:1 A.1:2 C.1:3", l.did(), "A.1 done, B.1 done, A.1 done, C.1 done")
	if r := l.st.Runs["x-1.A.2"]; r == nil || r.Child.Turn != 2 {
		t.Errorf("the second run of A is not its second: %+v", l.st.Order)
	}
	raw, err := json.Marshal(l.st)
	back := NewState()
	if err != nil || json.Unmarshal(raw, back) != nil || back.Runs["x-1"].List.Had["A"] != 1 {
		t.Errorf("a snapshot forgets the runs of a task that was gone: %v", back.Runs["x-1"].List.Had)
	}
	dirs := map[string]bool{}
	for _, f := range l.log {
		if r, ok := f.(RunStarted); ok && r.Child != nil {
			if dirs[r.Child.Dir] {
				t.Errorf("two runs have the folder %s", r.Child.Dir)
			}
			dirs[r.Child.Dir] = true
		}
	}
}

// TestListTurnsOverACrash: after a crash, and from a snapshot, the current iteration is not counted
// again and none is skipped; a relaunch in it keeps its turn.
func TestListTurnsOverACrash(t *testing.T) {
	l := tasksOf(t, "001 turns", "a crash in the middle of an iteration neither repeats nor loses a turn", "A B C", aList(List{Attempts: 2}, func(s *Step) { once := 1; s.Child.Steps[0].Restarts = &once }), listGate())
	for l.st.Runs["x-1.B.1"] == nil || len(l.st.Runs["x-1.B.1"].Procs) == 0 {
		l.drive(1)
	}
	l.restart(0)
	raw, err := json.Marshal(l.st)
	back := NewState()
	if err != nil || json.Unmarshal(raw, back) != nil || back.Runs["x-1"].List.Turns != 2 {
		t.Fatalf("a snapshot has other turns: %v", back.Runs["x-1"].List)
	}
	b := l.st.Runs["x-1.B.1"]
	l.do(ProcessEnded{Run: "x-1.B.1", Key: b.Procs[0].Key, Exit: Exit{Lost: true, Code: -1}})
	l.all()
	l.want(l.turnsOf(), "A.1:0 B.1:1 C.1:2", l.r().Phase, RunCompleted)
	if n := b.Attempts["work"][0].K; n != 2 {
		t.Errorf("B was launched %d times", n)
	}
}

// TestListStatusFlow: a task goes from todo to doing, and on to done or blocked. A blocked task is
// retried automatically, also when the list is sent back, and is todo again when a person says so
// in the file.
func TestListStatusFlow(t *testing.T) {
	l := tasksOf(t, "001 status.flow", "todo, doing, blocked, doing, blocked; sent back: blocked with new tries, doing, done", "A", aList(List{Attempts: 2}), aGate("work", to(EndDone)))
	rounds := 0
	l.plays = func(string, int) string { return map[bool]string{true: "blocked", false: "done"}[rounds == 0] }
	var flow []string
	follow := func(until func() bool) {
		for i := 0; !until(); i++ {
			if i > 2000 {
				t.Fatalf("it does not come so far: %v", flow)
			}
			l.drive(1)
			if a := l.r().List.Task("A"); a != nil && (len(flow) == 0 || flow[len(flow)-1] != a.State) {
				flow = append(flow, a.State)
			}
		}
	}
	follow(func() bool { return l.gate("gwork") == "1 reviewing" })
	l.want(fmt.Sprint(flow), "[doing blocked doing failed]", l.status("A"), TaskBlocked)
	rounds++
	l.do(ProcessEnded{Run: l.run, Key: l.r().CurrentRound("gwork").Key, Verdict: &Judgement{Outcome: OutcomeFail, Feedback: "now it can be done"}})
	follow(func() bool { return l.gate("gwork") == "2 reviewing" })
	l.want(fmt.Sprint(flow), "[doing blocked doing failed blocked doing done]", l.status("A"), TaskDone)

	l = tasksOf(t, "001 status.flow", "blocked in the file: a person makes it todo", "A B C", aList(List{Attempts: 1}), listGate())
	l.edit("A", TaskBlocked)
	for l.st.Runs["x-1.B.1"] == nil {
		l.drive(1)
	}
	l.want(l.r().List.Task("A").State, TaskBlocked)
	l.do(PauseRequested{Run: "x-1", By: ann})
	l.drive(500)
	l.edit("A", TaskTodo)
	l.do(ResumeRequested{Run: "x-1", By: ann})
	l.all()
	l.want(l.did(), "B.1 done, A.1 done, C.1 done", l.r().Phase, RunCompleted)
}

// TestListAddsWhatIsRight: new tasks are validated before any is added; if one is wrong, none is
// added, the try has failed, and the reason names the task.
func TestListAddsWhatIsRight(t *testing.T) {
	for answer, why := range map[string]string{
		`[{"id":"N1","depends_on":["A"]},{"id":"N2","depends_on":["N1"]}]`:  "",
		`[{"id":"N1","depends_on":["nix"]}]`:                                "N1 depends on nix",
		`[{"id":"N1"},{"id":"N1"}]`:                                         "N1",
		`[{"id":"N1","depends_on":["N2"]},{"id":"N2","depends_on":["N1"]}]`: "wait for one another: N1 -> N2 -> N1",
		`[{"id":"../x"}]`: "id",
		`[{"id":"N1","priority":null,"title":null,"stands_for":null}]`: "",
		`[{"id":"N1","title":7}]`:                                      "title: want a text",
		`[{"id":"N1","stands_for":[]}]`:                                "stands_for: want a text",
		`[{"id":7}]`:                                                   "id: want a text",
		`[{"id":"N1","priority":1.5}]`:                                 "priority: want a whole number",
		`[{"id":"N1","priority":"high"}]`:                              "priority",
		`"none"`:                                                       "new_tasks",
	} {
		l := tasksOf(t, "001 new_tasks.checked", "ids, doubled ids, dependencies, cycles, kinds", "A B", aList(List{Attempts: 1, MaxDepth: 3}), listGate(most(1), exhausted(EndFailed)))
		l.new = func(step, task string) string { return map[bool]string{true: answer}[task == "A"] }
		l.all()
		a, n := l.r().List.Task("A"), len(l.r().List.Tasks)
		if why == "" && (n < 3 || a.State != TaskDone) || why != "" && (n != 2 || a.State == TaskDone || !strings.Contains(a.Why, why)) {
			t.Errorf("%s: %d tasks, A is %s: %q; want %q", answer, n, a.State, a.Why, why)
		}
	}
}

// TestStubbedRunOffersNothing: in a stubbed run, a stand-in takes a step that would be on offer.
func TestStubbedRunOffersNothing(t *testing.T) {
	w := flow("x", aStep("a", func(s *Step) { s.Agent.Launch = LaunchInteractive }), aGate("a", to(EndDone)))
	s := begin(t, "6-seeds stub", "a step that is on offer is done by a stand-in: nobody is waited for", w)
	s.want(fmt.Sprint(s.owes(DoOffer, "x-1/a#1"), s.owes(DoRun, "x-1/a#1")), "true false")
	s.do(AbortRequested{Run: "x-1", By: ann})
	s.stubbed("x")
	s.want(fmt.Sprint(s.owes(DoOffer, "x-2/a#1"), s.owes(DoRun, "x-2/a#1")), "false true", fmt.Sprint(s.r().Current("a").Offered, s.r().Current("a").Deadline.IsZero()), "false false")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

// TestTurnsOfARun: attempts and reviews are numbered as they are launched, and keep their number
// when relaunched.
func TestTurnsOfARun(t *testing.T) {
	s := begin(t, "", "", two(nil, nil))
	s.exit("a", Exit{Code: -1, Lost: true})
	s.later(backoffFirst)
	s.want(fmt.Sprint(s.r().Attempts["a"][0].K, s.r().Attempts["a"][0].Turn), "2 1")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(fmt.Sprint(s.r().Rounds["ga"][0].Turn, s.r().Attempts["b"][0].Turn, s.r().Turns), "2 3 3")
}
