package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// turnsOf tells whose turn it was in each run of a task, in their order.
func (l *listed) turnsOf() string {
	var out []string
	for _, f := range l.log {
		if r, ok := f.(RunStarted); ok && r.Child != nil {
			out = append(out, fmt.Sprintf("%s.%d:%d", r.Child.Task, r.Child.Try, r.Child.Turn))
		}
	}
	return strings.Join(out, " ")
}

// TestListTurns: each iteration is the next one's turn, whatever became of the one before it.
func TestListTurns(t *testing.T) {
	l := tasksOf(t, "001 odd-even", "the iterations of a list are counted, each once: by that the agents of a role take turns", "A B C D", aList(List{Attempts: 3}), listGate()).all()
	l.want(l.turnsOf(), "A.1:0 B.1:1 C.1:2 D.1:3")

	// A failed iteration has had its turn.
	l = tasksOf(t, "001 round-robin", "an iteration that failed has had its turn", "A B C", aList(List{Attempts: 2}), listGate(most(1), exhausted(EndFailed)))
	l.plays = func(task string, try int) string {
		return map[bool]string{true: "failed", false: "done"}[task == "A" && try == 1]
	}
	l.all()
	l.want(l.turnsOf(), "A.1:0 A.2:1 B.1:2 C.1:3")

	// The list is sent back with another task: it goes on where it was.
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

// TestListTurnsOutliveTheirTasks: what a person takes out of the file has had its turn, and what comes back under the same name
// is another run in another folder.
func TestListTurnsOutliveTheirTasks(t *testing.T) {
	l := tasksOf(t, "001 round-robin", "tasks that are taken out of the file have had their turns", "A B C", aList(List{Attempts: 2}), listGate())
	rest := func(after, tasks string) { // paused, so that what a person writes is taken
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

// TestListTurnsOverACrash: after a crash, and from a snapshot, the iteration that was under way is not counted again and none is
// passed over; what is launched anew in it is its own.
func TestListTurnsOverACrash(t *testing.T) {
	l := tasksOf(t, "001 odd-even", "a crash in the middle of an iteration neither repeats nor loses a turn", "A B C", aList(List{Attempts: 2}, func(s *Step) { once := 1; s.Child.Steps[0].Restarts = &once }), listGate())
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

// TestStubbedRunOffersNothing: where stand-ins play the agents, one of them takes a step that would be on offer.
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
