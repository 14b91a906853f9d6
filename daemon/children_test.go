package daemon

import (
	"fmt"
	"testing"

	"sluice/engine"
)

// TestChildSteps: what the gates of a run's tasks have judged is told with the run, without what
// was undone with the step that it was done for, and no more than a bound.
func TestChildSteps(t *testing.T) {
	task := &engine.Spec{ID: "t", Steps: []*engine.Step{{ID: "a", Gates: []string{"g"}}}, Gates: []*engine.Gate{{ID: "g", Step: "a"}}}
	c := &core{state: engine.NewState(), specs: map[string]*engine.Spec{"d": task}}
	top := &engine.Run{ID: "w-1", Attempts: map[string][]*engine.Attempt{"work": {{N: 1, State: engine.Superseded}, {N: 2, State: engine.Passed}}}}
	add := func(id string, of *engine.ChildOf) {
		c.state.Order = append(c.state.Order, id)
		c.state.Runs[id] = &engine.Run{ID: id, Digest: "d", Child: of, Attempts: map[string][]*engine.Attempt{"a": {{N: 1, State: engine.Passed}}},
			Rounds: map[string][]*engine.Round{"g": {{N: 1, Step: "a", Attempt: 1, State: engine.Approved, Digest: id, Feedback: "long"}}}}
	}
	c.state.Order, c.state.Runs["w-1"] = []string{"w-1"}, top
	add("w-1.T1.1", &engine.ChildOf{Parent: "w-1", Step: "work", N: 1})
	add("w-1.T1.2", &engine.ChildOf{Parent: "w-1", Step: "work", N: 2})
	add("w-1.T1.2.b.1", &engine.ChildOf{Parent: "w-1.T1.2", Step: "a", N: 1})
	add("v-1.T1.1", &engine.ChildOf{Parent: "v-1", Step: "work", N: 1})
	var got []string
	for _, st := range childSteps(c, top) {
		q := st.Gates[0].Rounds[0]
		got = append(got, st.ID+" "+q.State+" "+q.Digest+q.Feedback)
	}
	if want := "[w-1.T1.1/a superseded w-1.T1.1 w-1.T1.2/a passed w-1.T1.2 w-1.T1.2.b.1/a passed w-1.T1.2.b.1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for i := range MaxChildSteps {
		add(fmt.Sprintf("w-1.M%d.1", i), &engine.ChildOf{Parent: "w-1", Step: "work", N: 2})
	}
	if all := childSteps(c, top); len(all) != MaxChildSteps || all[0].ID != "w-1.M0.1/a" {
		t.Errorf("%d, the first %s", len(all), all[0].ID)
	}
}
