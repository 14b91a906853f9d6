package render

import (
	"reflect"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

// TestPictureNotes: a picture of a run has the tasks, attempts and rounds, and how often a gate sent work back.
func TestPictureNotes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	notes, taken := PictureNotes(daemon.RunStatus{Steps: []daemon.StepStatus{
		{ID: "a", State: engine.Running, Attempt: 2, Since: now.Add(-33 * time.Minute),
			List: &daemon.ListStatus{Tally: engine.Tally{Total: 7, Done: 3}}},
		{ID: "b", State: engine.Passed, Attempt: 1, Since: now.Add(-time.Hour), Gates: []daemon.GateStatus{
			{ID: "g", Round: 2, Count: 1, Routes: map[string]int{"again": 3}}, {ID: "b", Implicit: true, Count: 9}}},
	}}, now)
	if want := map[string]string{
		"a": "3 of 7 tasks · attempt 2 · 33m00s", "b": "", "g": "round 2",
	}; !reflect.DeepEqual(notes, want) {
		t.Errorf("%q", notes)
	}
	if want := map[string]map[string]int{"g": {"fail": 1, "again": 3}}; !reflect.DeepEqual(taken, want) {
		t.Errorf("%v", taken)
	}
}
