package daemon

import (
	"slices"
	"testing"

	"sluice/engine"
)

// TestPassed: a run's judges know the attempts that have passed in its family, but none that was undone, also with the
// attempt that its run was part of.
func TestPassed(t *testing.T) {
	at := func(states ...string) (out []*engine.Attempt) {
		for i, s := range states {
			out = append(out, &engine.Attempt{N: i + 1, State: s})
		}
		return out
	}
	s := engine.NewState()
	for _, r := range []*engine.Run{
		{ID: "w-1", Attempts: map[string][]*engine.Attempt{"A": at(engine.Superseded, engine.Passed, engine.Passed),
			"L": at(engine.Superseded, engine.Running)}},
		{ID: "w-1.T1.1", Child: &engine.ChildOf{Parent: "w-1", Step: "L", N: 1}, Attempts: map[string][]*engine.Attempt{"B": at(engine.Passed)}},
		{ID: "w-1.T1.2", Child: &engine.ChildOf{Parent: "w-1", Step: "L", N: 2}, Attempts: map[string][]*engine.Attempt{"B": at(engine.Passed, engine.Gating)}},
		{ID: "w-2", Attempts: map[string][]*engine.Attempt{"A": at(engine.Passed)}},
	} {
		s.Runs[r.ID], s.Order = r, append(s.Order, r.ID)
	}
	want := []string{"w-1.T1.2/B.1", "w-1/A.2", "w-1/A.3"}
	for _, id := range []string{"w-1", "w-1.T1.2"} {
		if got := passed(s, s.Runs[id]); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	spec := &engine.Spec{ID: "w", Setup: &engine.Setup{}, Steps: []*engine.Step{{ID: "A"}}}
	c := &core{state: s, specs: map[string]*engine.Spec{"": spec}}
	j := (&orders{core: c}).job(engine.Effect{Run: "w-1", Step: "A", N: 2, Proc: &engine.Proc{Step: "A", N: 2}})
	if !slices.Equal(j.Passed, want) {
		t.Errorf("the job has %q", j.Passed)
	}
}
