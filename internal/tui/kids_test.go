package tui

import (
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

// TestEndedTaskRunsAreHidden: ended runs of tasks are counted, as by `sluice ls`, and a filter finds them; those at work stay.
func TestEndedTaskRunsAreHidden(t *testing.T) {
	s := newSit(t, 140, 30)
	run := func(id, phase string, child *engine.ChildOf) daemon.RunStatus {
		r := daemon.RunStatus{ID: id, Workflow: "w", Phase: phase, Started: s.at.Add(-time.Minute), Child: child}
		if phase != engine.RunRunning {
			r.Ended = s.at
		}
		return r
	}
	of := &engine.ChildOf{Parent: "goal-1", Step: "work", Task: "T1", Try: 1}
	s.repo1(true, run("goal-1", engine.RunRunning, nil), run("goal-1.T1", engine.RunFailed, of), run("goal-1.T2", engine.RunRunning, of),
		run("old-1", engine.RunCompleted, nil))
	s.sees(`app · 2 live, 1 ended, 1 ended of tasks \(/ finds them\)`, `goal-1\.T2`, `old-1`)
	s.misses(`goal-1\.T1`)
	s.types("/T1<enter>")
	s.sees(`✗ goal-1\.T1`)
}
