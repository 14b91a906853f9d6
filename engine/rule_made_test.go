package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// madeList is a list whose file is written from `plan`'s answer: the tasks of each of its attempts,
// "A B".
func madeList(t *testing.T, e List, g *Gate, plans ...string) *listed {
	t.Helper()
	plan, gp := ungated("plan", to("work"))
	plan.Signal = Signal{Type: SignalExit}
	e.From = Value{Source: "steps.plan.answer.items", Reads: []string{"plan", "work"}, Eval: func(env *Env) (any, error) {
		if env.Steps["plan"].Status != Passed {
			return nil, fmt.Errorf("the plan is %s", env.Steps["plan"].Status)
		}
		text := plans[min(env.Steps["plan"].Attempt, len(plans))-1]
		if text == "" {
			return nil, errors.New("w.yaml:5: it has no items")
		}
		return text, nil
	}}
	l := tasksOf(t, "", "", "", plan, gp, aList(e), g)
	return l
}

func TestListMade(t *testing.T) {
	conform.Rule(t, "13-law from answer", "anew with the planning step; from the file where it is sent back itself; what was known of its tasks is forgotten")
	back := func(g *Gate) { g.OnFail = "plan" }
	l := madeList(t, List{Attempts: 1}, listGate(most(3), back), "A B", "B C")
	l.plays = func(task string, _ int) string { return map[bool]string{true: "failed", false: "done"}[task == "A"] }
	l.all()
	l.want(l.did(), "A.1 failed, B.1 done, B.1 done, C.1 done", l.r().Phase, RunCompleted, fmt.Sprint(l.makes), "[A B B C]",
		fmt.Sprint(l.st.Runs["x-1.B.2"] != nil), "true", l.r().List.Own, "to-do.json", fmt.Sprint(len(l.r().List.Make)), "0")

	// Sent back itself, it continues from the file, with a person's changes in it.
	l = madeList(t, List{Attempts: 1}, listGate(most(3)), "A B", "C")
	l.plays = func(task string, _ int) string {
		return map[bool]string{true: "failed", false: "done"}[task == "A" && len(l.order) < 2]
	}
	l.all()
	l.want(l.did(), "A.1 failed, B.1 done, A.1 done", fmt.Sprint(l.makes), "[A B]", l.r().Phase, RunCompleted)
	l.do(RetryRequested{Run: "x-1", Step: "work", By: Actor{Who: "ann"}})
	l.all()
	l.want(fmt.Sprint(l.makes), "[A B]")
	l.do(RetryRequested{Run: "x-1", Step: "plan", By: Actor{Who: "ann"}})
	l.all()
	l.want(fmt.Sprint(l.makes), "[A B C]", l.did(), "A.1 failed, B.1 done, A.1 done, C.1 done", fmt.Sprint(len(l.r().List.Tasks)), "1")

	// Likewise after visiting a step.
	rp, gr := side("replan")
	l = madeList(t, List{Attempts: 1, OnExhausted: "replan", MaxDepth: 2}, listGate(most(1), exhausted(EndFailed)), "A B")
	w := l.specs["d-x"]
	w.Steps, w.Gates = append(w.Steps, rp), append(w.Gates, gr)
	if f := w.Link(); f != nil {
		t.Fatal(f)
	}
	l.plays = func(task string, _ int) string { return map[bool]string{true: "failed", false: "done"}[task == "A"] }
	l.all()
	l.want(fmt.Sprint(l.makes), "[A B]", l.did(), "A.1 failed, B.1 done", l.r().List.Task("A").State, TaskFailed)
}

func TestListMadeFails(t *testing.T) {
	l := madeList(t, List{Attempts: 1}, listGate(most(1), exhausted(EndFailed)), "")
	l.all()
	l.want(l.r().Phase, RunFailed, l.r().Attempts["work"][0].Failure, "w.yaml:5: it has no items", fmt.Sprint(l.makes), "[]")

	// One that cannot be written fails the step; it is written in the next attempt.
	l = madeList(t, List{Attempts: 1}, listGate(most(2), exhausted(EndFailed)), "A")
	l.unwritable = "it is there already"
	for range 500 {
		if a := l.r().Current("work"); a != nil && a.N == 2 {
			break
		}
		l.drive(1)
	}
	l.want(l.r().Attempts["work"][0].Failure, "it is there already", l.r().List.Source, "")
	l.unwritable = ""
	l.all()
	l.want(l.r().Phase, RunCompleted, l.did(), "A.1 done", fmt.Sprint(l.makes), "[A]")
}

// TestListMadeOnce: whenever it is killed, before or after the write, the file is written from a
// value computed once.
func TestListMadeOnce(t *testing.T) {
	l := madeList(t, List{Attempts: 1}, listGate(most(1)), "A B")
	for len(l.owed(DoSave)) == 0 {
		l.drive(1)
	}
	e := l.owed(DoSave)[0]
	snapshot, err := json.Marshal(l.st)
	if err == nil {
		l.st = NewState()
		err = json.Unmarshal(snapshot, l.st)
	}
	if err != nil {
		t.Fatal(err)
	}
	again := l.owed(DoSave)
	l.want(fmt.Sprint(len(again)), "1", again[0].Key, e.Key, strings.Trim(string(l.r().List.Make), `"`), "A B", fmt.Sprint(len(l.owed(DoTasks))), "0")
	l.carry(again[0])
	// from the killed process: nothing waits for it
	l.do(TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Why: "twice"})
	l.all()
	l.want(l.r().Phase, RunCompleted, l.did(), "A.1 done, B.1 done")
}

// TestListMadeWithoutItsSpec: a list that cannot be written fails as soon as the run's spec can be
// read again.
func TestListMadeWithoutItsSpec(t *testing.T) {
	l := madeList(t, List{Attempts: 1}, listGate(most(1), exhausted(EndFailed)), "A B")
	save := func() []Effect {
		return slices.DeleteFunc(l.st.Owed(l.spec), func(e Effect) bool { return e.Kind != DoSave })
	}
	for len(save()) == 0 {
		l.drive(1)
	}
	w := l.specs["d-x"]
	delete(l.specs, "d-x")
	fail := func() { e := save()[0]; l.do(TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Why: "no room"}) }
	fail()
	l.want(fmt.Sprint(len(save())), "1", l.r().Phase, RunRunning)
	l.specs["d-x"] = w
	fail()
	l.all()
	l.want(l.r().Phase, RunFailed, l.r().Attempts["work"][0].Failure, "no room")
}
