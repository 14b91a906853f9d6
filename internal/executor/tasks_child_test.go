//go:build linux || darwin

package executor

import (
	"os"
	"slices"
	"testing"
	"time"

	"sluice/engine"
)

// TestSessionOfATry: a conversation is the run's, and each try at a task is a run of its own: the next task, and the next try,
// begin anew; within one try it goes on.
func TestSessionOfATry(t *testing.T) {
	b := newTalks(t, "said=done")
	for i, at := range []struct{ run, step string }{{"w-1.T1.1", "A"}, {"w-1.T1.1", "B"}, {"w-1.T1.2", "A"}, {"w-1.T2.1", "A"}, {"w-1.T2.1", "B"}} {
		job := b.stepJob(at.step, 1, 1)
		job.Run, job.RunInfo.ID = at.run, at.run
		job.Key = at.run + "/" + at.step + "#1.1"
		job.RunInfo.Child = &engine.ChildOf{Parent: "w-1", Step: "work", N: 1, Task: at.run[4:6], Dir: "w-1/work.1/" + at.run[4:]}
		if job.Proc != nil {
			job.Proc.Key = job.Key
		}
		if ev := b.carry(job); ev.Exit.Class != "" || ev.Exit.NotStarted != "" {
			t.Errorf("%d: %+v", i, ev.Exit)
		}
	}
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\nresume:\nresume:\nresume:talk-0002\n" {
		t.Errorf("asked %q", got)
	}
}

// TestTriedFiles: the next try is told where the files are that say what was wrong with those before, also when a run that
// began meanwhile had them moved away.
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
	job := b.stepJob("A", 1, 1)
	job.Run = "w-1.T1.3"
	if got := b.e.triedFiles(job, b.root); got != nil {
		t.Errorf("of a run that is nobody's child: %v", got)
	}
	job.RunInfo.Child = &engine.ChildOf{Parent: "w-1", Task: "T1"}
	want := []string{".workflow/runs/w-1.T1.1/retry-context/test-attempt-1.md", ".workflow/retry-context/w-1.T1.2/test-attempt-9.md", ".workflow/retry-context/w-1.T1.2/look-attempt-1.md"}
	if got := b.e.triedFiles(job, b.root); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
