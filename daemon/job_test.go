package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sluice/engine"
)

// TestTaskNames: a run knows the tasks that it is done for by their names, through child runs that
// are no task's, and a name means the task of the innermost list that has one.
func TestTaskNames(t *testing.T) {
	run := func(id, parent, task string, try int, tasks ...string) string {
		child, list := "", ""
		if parent != "" {
			child = fmt.Sprintf(`, "child": {"parent": %q, "step": "s", "n": 1, "task": %q, "try": %d, "dir": ""}`, parent, task, try)
		}
		for i, name := range tasks {
			list += map[bool]string{false: ","}[i == 0] + fmt.Sprintf(`{"id": %q}`, name)
		}
		if list != "" {
			list = `, "list": {"step": "s", "n": 1, "path": "p", "tasks": [` + list + `]}`
		}
		return fmt.Sprintf(`%q: {"id": %[1]q, "phase": "running"%s%s}`, id, child, list)
	}
	var s engine.State
	state := "{" + `"runs": {` + run("top", "", "", 0, "T1", "T2") + "," + run("two", "top", "T2", 3, "T1", "T3") + "," + run("one", "top", "T1", 2, "T1") + "," +
		run("part", "two", "", 0) + "," + run("three", "two", "T3", 1) + "," + run("same", "one", "T1", 1) + `}, "order": ["top", "two", "one", "part", "three", "same"]}`
	if err := json.Unmarshal([]byte(state), &s); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"top": "[]", "two": "[{T2 3 true}]", "part": "[{T2 3 false}]", "three": "[{T3 1 true} {T2 3 false}]",
		"same": "[{T1 1 true}]", // the outer T1 has the name of an inner one
	} {
		if got := fmt.Sprint(taskNames(&s, s.Runs[id])); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// TestTaskAnswersAreTold: the whole status of a list has the answers of tasks that are done, the
// short one none.
func TestTaskAnswersAreTold(t *testing.T) {
	l := &engine.TaskList{Tasks: []*engine.Task{{ID: "T1", State: engine.TaskDone, Child: "w-1.T1.1"}, {ID: "T2", State: engine.TaskFailed}},
		Answers: map[string]json.RawMessage{"T1": json.RawMessage(`{"n":1}`), "T2": json.RawMessage(`{"n":2}`)}}
	full := listStatus(l, true)
	if string(full.Tasks[0].Answer) != `{"n":1}` || full.Tasks[1].Answer != nil {
		t.Errorf("%+v", full.Tasks)
	}
	if short := listStatus(l, false); len(short.Tasks) != 1 || short.Tasks[0].Answer != nil {
		t.Errorf("%+v", short.Tasks)
	}
}

// TestScansNameTheRecord: each process is named, also one that is to be ended because its run is over.
func TestScansNameTheRecord(t *testing.T) {
	st := &engine.State{Order: []string{"w-1", "w-2"}, Runs: map[string]*engine.Run{
		"w-1": {ID: "w-1", Phase: engine.RunAborted, Procs: engine.Procs{{Key: "w-1/A#1.1"}}},
		"w-2": {ID: "w-2", Phase: engine.RunRunning, Procs: engine.Procs{{Key: "w-2/A#1.1"}, {Key: "w-2/B#1.1"}}},
	}}
	if got := inboxes(st, nil).Procs; !slices.Equal(got, []string{"w-1/A#1.1", "w-2/A#1.1", "w-2/B#1.1"}) {
		t.Errorf("%v", got)
	}
}
