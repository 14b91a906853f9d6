package work

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/tools/conform"
)

// TestTasksMade: a list is written from a value as it is; twice is as once, one of others is never written over, and the
// run's own is kept as it was before it is replaced.
func TestTasksMade(t *testing.T) {
	conform.Rule(t, "13-law from answer", "as the value stands, once for all, and never over a file of others")
	dir := t.TempDir()
	e := taskWriter(dir)
	path := filepath.Join(dir, "lists", "w-1.json")
	j := func(value string, own bool) job.Job {
		return job.Job{Effect: engine.Effect{Run: "w-1", Step: "work", N: 2, Key: "k"},
			Tasks: &job.TaskFile{Path: "lists/w-1.json", Make: json.RawMessage(value), From: "steps.plan.answer", Own: own}}
	}
	read := func() string {
		b, _ := os.ReadFile(path)
		return string(b)
	}
	const first, want = `["one",{"title":"two"}]`, "[\n  \"one\",\n  {\n    \"title\": \"two\"\n  }\n]\n"
	for range 2 { // the second time after a crash
		if why := e.makeTasks(t.Context(), j(first, false)); why != "" || read() != want {
			t.Errorf("%s: %s", why, read())
		}
	}
	if why := e.makeTasks(t.Context(), j(`["other"]`, false)); !strings.Contains(why, "lists/w-1.json is there already, and this run has not written it") || read() != want {
		t.Errorf("%s: %s", why, read())
	}
	if why := e.makeTasks(t.Context(), j(`["other"]`, true)); why != "" || !strings.Contains(read(), "other") {
		t.Errorf("%s: %s", why, read())
	}
	kept, err := filepath.Glob(filepath.Join(dir, ".workflow", "runs", "*", "*", "w-1.json.before"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v %v", kept, err)
	}
	if b, _ := os.ReadFile(kept[0]); string(b) != want {
		t.Errorf("kept: %s", b)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if why := e.makeTasks(t.Context(), j(first, true)); !strings.Contains(why, "is there already, and no regular file") {
		t.Error(why)
	}
	for value, want := range map[string]string{
		`"words"`:                         `step work: for_each: tasks: steps.plan.answer: want a list of tasks or a task file, found "words"`,
		`null`:                            "found null",
		`{"items": []}`:                   `it is no list of tasks and no task file: "tasks" is missing: it is the list of tasks: there is {"items": []}`,
		`[1]`:                             "task 1 of the list is neither an object nor a text: 1",
		`[{"id":"A","depends_on":["B"]}]`: `task A depends on B, which does not exist`,
		`{"tasks": ["one"]}`:              "task 1 of the list is not an object",
	} {
		if why := e.makeTasks(t.Context(), j(value, true)); !strings.Contains(why, want) {
			t.Errorf("%s: %s, want %s", value, why, want)
		}
	}
}
