package work

import (
	"testing"

	"sluice/engine"
	"sluice/internal/job"
)

// TestStopOfAForgesReview: nothing runs here, so it is stopped and not lost.
func TestStopOfAForgesReview(t *testing.T) {
	j := job.Job{Effect: engine.Effect{Run: "w-1", Key: "w-1/G#1.1", Proc: &engine.Proc{Kind: engine.ProcReview, Forge: true}}}
	ev, ok := taskWriter(t.TempDir()).Stop(t.Context(), j).(engine.ProcessEnded)
	if !ok || ev.Key != j.Key || !ev.Exit.Stopped || ev.Exit.Lost {
		t.Errorf("%+v", ev)
	}
}
