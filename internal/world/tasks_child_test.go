//go:build linux || darwin

package world

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/collect"
	"sluice/internal/tree"
)

// TestSessionOfATry: a conversation belongs to the run, and each try at a task is its own run. The
// next task and the next try start a new one; within one try it continues.
func TestSessionOfATry(t *testing.T) {
	b := newTalks(t, "said=done")
	for i, at := range []struct{ run, step string }{{"w-1.T1.1", "A"}, {"w-1.T1.1", "B"}, {"w-1.T1.2", "A"}, {"w-1.T2.1", "A"}, {"w-1.T2.1", "B"}} {
		j := b.stepJob(at.step, 1, 1)
		j.Run, j.RunInfo.ID = at.run, at.run
		j.Key = at.run + "/" + at.step + "#1.1"
		j.RunInfo.Child = &engine.ChildOf{Parent: "w-1", Step: "work", N: 1, Task: at.run[4:6], Dir: "w-1/work.1/" + at.run[4:]}
		if j.Proc != nil {
			j.Proc.Key = j.Key
		}
		if ev := b.carry(j); ev.Exit.Class != "" || ev.Exit.NotStarted != "" {
			t.Errorf("%d: %+v", i, ev.Exit)
		}
	}
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\nresume:\nresume:\nresume:talk-0002\n" {
		t.Errorf("asked %q", got)
	}
}

// TestTriedFiles: the next try gets the files with the faults of earlier tries, even if a run that
// began meanwhile moved them away.
func TestTriedFiles(t *testing.T) {
	b := newTalks(t, "said=done")
	day := time.Now().Add(-time.Hour)
	for i, name := range []string{
		".workflow/runs/w-1.T1.1/retry-context/test-attempt-1.md", ".workflow/retry-context/w-1.T1.2/test-attempt-9.md", ".workflow/retry-context/w-1.T1.2/look-attempt-1.md",
		".workflow/retry-context/w-1.T1.3/test-attempt-1.md", ".workflow/retry-context/w-1.T2.1/test-attempt-1.md",
	} {
		b.put(name, "wrong")
		at := day.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(b.path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	j := b.stepJob("A", 1, 1)
	j.Run = "w-1.T1.3"
	if got := b.e.TriedFiles(j, b.root); got != nil {
		t.Errorf("of a run that is nobody's child: %v", got)
	}
	j.RunInfo.Child = &engine.ChildOf{Parent: "w-1", Task: "T1"}
	want := []string{".workflow/runs/w-1.T1.1/retry-context/test-attempt-1.md", ".workflow/retry-context/w-1.T1.2/test-attempt-9.md", ".workflow/retry-context/w-1.T1.2/look-attempt-1.md"}
	if got := b.e.TriedFiles(j, b.root); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// The newest are named, however many others are there, and none whose name would be more than a
	// name.
	old := day.Add(-time.Hour)
	for i := range 3 * collect.MaxTriedFiles {
		name := fmt.Sprintf(".workflow/retry-context/w-1.T1.2/a-%d.md", i)
		if b.put(name, "x"); os.Chtimes(b.path(name), old, old) != nil {
			t.Fatal(name)
		}
	}
	b.put(".workflow/retry-context/w-1.T1.2/a\nb.md", "x")
	got := b.e.TriedFiles(j, b.root)
	if len(got) != collect.MaxTriedFiles || !slices.Equal(got[len(got)-2:], want[1:]) {
		t.Errorf("of many: %q", got)
	}
	// However much there is to be said, the task stays.
	j.RunInfo.FileWhy, j.RunInfo.Tried, j.Earlier = "a cycle", []string{"no test"}, []string{"it crashed"}
	j.RunInfo.Child.Body = json.RawMessage(`{"id": "T1", "title": "the title"}`)
	text, err := b.e.StepPrompt(t.Context(), j, j.Spec.Step("A"), tree.Begin{Dir: b.root}, launch.Who{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the title", "a cycle", "no test", "look-attempt-1.md", "it crashed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt has no %q:\n%s", want, text)
		}
	}
}
