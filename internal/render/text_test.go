package render

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// What show fills in of a task is what the run itself had.
func TestShowKnowsTheTask(t *testing.T) {
	t.Parallel()
	r := daemon.RunStatus{Child: &engine.ChildOf{Parent: "w-1", Task: "T1", Try: 2, Depth: 1, Body: json.RawMessage(`{"title": "the parser"}`)}}
	want := map[string]any{"id": "T1", "attempt": 2.0, "depth": 1.0, "title": "the parser"}
	if got := KnownOf(r, daemon.StepStatus{}).Task; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Child.Task = "" // a child of a step that is no list
	if got := KnownOf(r, daemon.StepStatus{}).Task; got != nil {
		t.Errorf("got %v, want none", got)
	}
	r.Child = nil
	if got := KnownOf(r, daemon.StepStatus{}).Task; got != nil {
		t.Errorf("got %v, want none", got)
	}
}

// TestShownValuesHideNothing: a value that an agent gave is shown whole to the person whom a text asks about it.
func TestShownValuesHideNothing(t *testing.T) {
	t.Parallel()
	const evil = "ls; : '\x1b]0;'; rm -r x; : '\x07'"
	if got := KnownOf(daemon.RunStatus{}, daemon.StepStatus{}).Foreign("", evil); !strings.Contains(got, "rm -r x") {
		t.Errorf("%q", got)
	}
}

// TestTaskLines: show lists each task of a list with its status and its answer in one line.
func TestTaskLines(t *testing.T) {
	long := json.RawMessage(`{"files":["` + strings.Repeat("a", 400) + `"]}`)
	tasks := []daemon.TaskStatus{{ID: "T1", State: "done", Answer: json.RawMessage(`{"n":1}`), Summary: "made it"}, {ID: "T2", State: "done", Answer: long},
		{ID: "T3", State: "failed", Why: "no\ncompiler"}, {ID: "T4", State: "todo"},
		{ID: "T5", State: "done", Why: "too big"}, {ID: "T5.1", State: "done", StandsFor: "T5"}, {ID: "T5.2", State: "done", StandsFor: "T5"}}
	got := TaskLines(tasks)
	if len(got) != 7 || got[4] != "task T5 done: replaced by T5.1, T5.2" || got[0] != `task T1 done: {"n":1}` || len([]rune(got[1])) > showAnswer || !strings.HasPrefix(got[1], `task T2 done: {"files":["aaa`) ||
		strings.Contains(got[2], "\n") || !strings.Contains(got[2], "failed: no") || got[3] != "task T4 todo" {
		t.Errorf("%q", got)
	}
	if got := TaskLines([]daemon.TaskStatus{{ID: "T1", State: "done", Before: true, Summary: "wrote it"}}); got[0] != "task T1 done, not by this run: wrote it" {
		t.Errorf("%q", got)
	}
	if got := TaskLines(make([]daemon.TaskStatus, showTasks+2)); len(got) != showTasks+1 || !strings.Contains(got[showTasks], "2 more") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

// TestStatusSaysWordsOnce: the words of the failure that made a gate ask you stand in its row. They are not quoted below
// it again.
func TestStatusSaysWordsOnce(t *testing.T) {
	t.Parallel()
	g := daemon.GateStatus{ID: "g", State: engine.OnHuman, Level: "auto", Why: "it failed 3 times: no tests", Feedback: "no tests"}
	for _, c := range []struct {
		why  string
		most int
	}{{"it failed 3 times: no tests", 1}, {"level", 1}, {"forced", 1}} {
		g.Why = c.why
		r := daemon.RunStatus{ID: "w-1", Phase: engine.RunRunning, Steps: []daemon.StepStatus{{ID: "s", Gates: []daemon.GateStatus{g}}}}
		lines := strings.Join(RunLines(console.New(nil, nil, nil, nil), r, time.Time{}), "\n")
		if n := strings.Count(lines, "no tests"); n != c.most {
			t.Errorf("%s: the words are there %d times:\n%s", c.why, n, lines)
		}
	}
}
