package show

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/daemon"
)

// TestShowTasksInJSON: of a list, JSON has each answer whole.
func TestShowTasksInJSON(t *testing.T) {
	long := json.RawMessage(`{"files":["` + strings.Repeat("a", 400) + `"]}`)
	tasks := []daemon.TaskStatus{{ID: "T1", State: "done", Answer: json.RawMessage(`{"n":1}`), Summary: "made it"}, {ID: "T2", State: "done", Answer: long},
		{ID: "T3", State: "failed", Why: "no\ncompiler"}, {ID: "T4", State: "todo"}}
	raw, err := json.Marshal(Shown{Tasks: tasks})
	if err != nil || !strings.Contains(string(raw), string(long)) {
		t.Errorf("%s %v", raw, err)
	}
}
