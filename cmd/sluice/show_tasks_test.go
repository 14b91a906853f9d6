package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/daemon"
)

// TestTaskLines: show lists each task of a list with its status and its answer in one line; JSON has the answer whole.
func TestTaskLines(t *testing.T) {
	long := json.RawMessage(`{"files":["` + strings.Repeat("a", 400) + `"]}`)
	tasks := []daemon.TaskStatus{{ID: "T1", State: "done", Answer: json.RawMessage(`{"n":1}`), Summary: "made it"}, {ID: "T2", State: "done", Answer: long},
		{ID: "T3", State: "failed", Why: "no\ncompiler"}, {ID: "T4", State: "todo"}}
	got := taskLines(tasks)
	if len(got) != 4 || got[0] != `task T1 done: {"n":1}` || len([]rune(got[1])) > showAnswer || !strings.HasPrefix(got[1], `task T2 done: {"files":["aaa`) ||
		strings.Contains(got[2], "\n") || !strings.Contains(got[2], "failed: no") || got[3] != "task T4 todo" {
		t.Errorf("%q", got)
	}
	if got := taskLines(make([]daemon.TaskStatus, showTasks+2)); len(got) != showTasks+1 || !strings.Contains(got[showTasks], "2 more") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
	raw, err := json.Marshal(shown{Tasks: tasks})
	if err != nil || !strings.Contains(string(raw), string(long)) {
		t.Errorf("%s %v", raw, err)
	}
}
