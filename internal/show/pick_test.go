package show

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
)

// TestTheOutputOfWhatWorks: a launch at work comes before one that wrote later and has ended, and before one that waits; a
// run in which something works before a newer one.
func TestTheOutputOfWhatWorks(t *testing.T) {
	root := t.TempDir()
	begin := time.Now().Add(-time.Hour)
	wrote := func(dir string, minute int, ended bool) {
		dir = filepath.Join(root, filepath.FromSlash(layout.RunsDir), dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "stdout")
		if err := os.WriteFile(file, []byte("words\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Duration(minute) * time.Minute)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		if ended {
			if err := os.WriteFile(filepath.Join(dir, layout.ExitName), []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	wrote("w-1/a.1", 1, true)
	wrote("w-1/g.1", 2, false) // the reviewer at work
	wrote("w-1/c.1", 3, true)  // ended, and to be launched again
	wrote("w-1/d.1", 4, true)
	wrote("w-1/d.1/launch-2", 5, true)
	wrote("w-1/after_run.1", 9, false)
	silent := func(dir string, minute int, files ...string) {
		dir = filepath.Join(root, filepath.FromSlash(layout.RunsDir), dir)
		err := os.MkdirAll(dir, 0o755)
		for _, f := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), nil, 0o644))
		}
		at := begin.Add(time.Duration(minute) * time.Minute)
		if err := errors.Join(err, os.Chtimes(dir, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	silent("w-1/s.1", 6)
	silent("w-1/s.2", 7, layout.ExitName)
	silent("w-1/s.3", 8, layout.OwnDir)
	silent("w-1/files", 11)                                // the run's
	silent("w-1/list.1", 12, "to-do.json")                 // of tasks
	silent("w-1/offered.1", 12, "prompt.md", "offer.json") // nothing was launched
	runs := []daemon.RunStatus{
		{ID: "w-1", Phase: engine.RunRunning, Started: begin, Steps: []daemon.StepStatus{
			{ID: "a", State: engine.Gating, Attempt: 1, Gates: []daemon.GateStatus{{ID: "g", State: engine.OnReview, Round: 1}}},
			{ID: "b", State: engine.Ready, Attempt: 1},
			{ID: "c", State: engine.Running, Attempt: 1},
			{ID: "d", State: engine.Passed, Attempt: 1},
		}},
		{ID: "w-2", Phase: engine.RunPending},
	}
	for _, c := range []struct {
		id      string
		working map[string]bool
		want    string
	}{
		{"", atWork(runs), "g.1"},
		{"", nil, "s.3"}, // it began last; a hook has no words
		{"s", map[string]bool{"w-1/s.1": true}, "s.1"},
		{"", map[string]bool{"w-1/list.1": true, "w-1/s.3": true}, "s.3"},
		{"d", atWork(runs), "d.1/launch-2"},
		{"c", atWork(runs), "c.1"},
	} {
		got, err := NewestOutput(root, []string{"w-1"}, c.id, c.working)
		if rel, _ := filepath.Rel(filepath.Join(root, filepath.FromSlash(layout.RunsDir), "w-1"), got); err != nil || rel != c.want {
			t.Errorf("%q: %s, %v, want %s", c.id, rel, err, c.want)
		}
	}
	runs[0].Steps[0].Gates[0].Due = true // its reviewer waits for a slot
	if got := atWork(runs); got["w-1/g.1"] || got["w-1/b.1"] || !got["w-1/c.1"] {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		name string
		runs []daemon.RunStatus
		want string
	}{{"", runs, "w-1"}, {"last", runs, "w-2"}, {"w-2", runs, "w-2"}, {"", runs[1:], "w-2"},
		{"", []daemon.RunStatus{{ID: "o-1", Phase: engine.RunCompleted, Started: begin}, runs[1]}, "o-1"}} {
		if got, err := runToTail(c.runs, c.name); got != c.want || err != nil {
			t.Errorf("%q of %d: %s %v, want %s", c.name, len(c.runs), got, err, c.want)
		}
	}
}

// TestTheLastEnded: where nothing is live, what is shown is the run that ended last, not the one that began last.
func TestTheLastEnded(t *testing.T) {
	at := time.Now()
	ended := func(id string, minutes int) daemon.RunStatus {
		return daemon.RunStatus{ID: id, Phase: engine.RunCompleted, Ended: at.Add(time.Duration(minutes) * time.Minute)}
	}
	child := ended("w-1.T1.1", 9)
	child.Child = &engine.ChildOf{}
	got := liveOrLast([]daemon.RunStatus{ended("w-1", 1), ended("w-2", 5), ended("w-3", 2), child})
	if len(got) != 1 || got[0].ID != "w-2" {
		t.Errorf("%+v", got)
	}
	if got := liveOrLast(nil); len(got) != 0 {
		t.Errorf("no run: %+v", got)
	}
}
