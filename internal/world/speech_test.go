//go:build linux || darwin

package world

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/tools/conform"
)

// says prints lines as claude prints them.
const says = toldInit + `cat <<'END'
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"I am at it."},{"type":"tool_use","name":"Read","input":{"file_path":"a.go"}}]}}
{"type":"assistant","message":{"id":"n","content":[{"type":"tool_use","name":"Bash","input":{"command":"go build ./cmd"}},{"type":"tool_use","name":"Edit","input":{"file_path":"b.go"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"Build failed"}]}}
END
` + toldGood

// TestAgentsLog: what an agent says and does is in the run's file in the document's form; read again after a crash, with a torn
// line, nothing is there twice and nothing is missing.
func TestAgentsLog(t *testing.T) {
	conform.Rule(t, "13-law 001 log", "\"Each line is a JSON object\", of the types message, tool_use, command, error and summary: runs/<run>/agents.jsonl has what agents say and do")
	b := newBench(t, toldSpec)
	b.claude(says)
	b.carry(b.stepJob("A", 1, 1))
	file := ".workflow/runs/w-1/" + launch.AgentsLog
	want := []launch.Said{
		{Type: "message", Role: "assistant", Content: "I am at it."},
		{Type: "tool_use", Name: "Read", Input: map[string]string{"file_path": "a.go"}},
		{Type: "command", Command: "go build ./cmd"},
		{Type: "tool_use", Name: "Edit", Input: map[string]string{"file_path": "b.go"}},
		{Type: "error", Error: "Build failed"},
		{Type: "summary", Status: "done"},
	}
	holds := func() {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(b.get(file), "\n"), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), b.get(file))
		}
		for i, line := range lines {
			var l launch.Said
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Timestamp.IsZero() || l.Launch != "w-1/A#1.1" || l.N != i+1 {
				t.Errorf("line %d: %v: %s", i+1, err, line)
			}
			w := want[i]
			if l.Type != w.Type || l.Role != w.Role || l.Content != w.Content || l.Name != w.Name || l.Command != w.Command || l.Error != w.Error || l.Status != w.Status || l.Input["file_path"] != w.Input["file_path"] {
				t.Errorf("line %d: %s, want %+v", i+1, line, w)
			}
		}
	}
	holds()
	for cut := range len(b.get(file)) { // the crash came there: the rest is written by who reads the launch again
		if cut%97 != 0 {
			continue
		}
		if err := os.Truncate(b.path(file), int64(cut)); err != nil {
			t.Fatal(err)
		}
		b.e.Close()
		b.e = b.executor()
		b.carry(b.stepJob("A", 1, 1))
		holds()
	}
}
