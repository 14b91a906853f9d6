package specs

import (
	"slices"
	"testing"
)

// The labels of a step are those of the one that works: of a list, of each task.
func TestStepOn(t *testing.T) {
	t.Parallel()
	w, faults := Load("w.yaml", []byte(`workflow: {id: w, workspace: run}
steps:
  - {id: a, agent: {type: t}, on: [gpu, linux], next_step: b}
  - {id: b, agent: {type: t, worktree: x, reads: true}, on: [gpu], next_step: c}
  - {id: c, agent: {type: t}, on: [big], for_each: {tasks: tasks.json}, next_step: DONE}
`))
	if faults != nil {
		t.Fatal(faults)
	}
	for step, want := range map[string][]string{"a": {"gpu", "linux"}, "b": {"gpu"}, "c": nil} {
		if got := w.Step(step).On; !slices.Equal(got, want) {
			t.Errorf("step %s is on %v, want %v", step, got, want)
		}
	}
	if got := w.Step("c").Child.Step("c").On; !slices.Equal(got, []string{"big"}) {
		t.Errorf("a task of c is on %v", got)
	}
}

// A child run works in the worktree of its parent's: its own file need not say so.
func TestStepOnInAChild(t *testing.T) {
	t.Parallel()
	_, faults := LoadFile(family(t, map[string]string{
		"w": "workflow: {id: w, workspace: run}\nsteps:\n  - {id: a, workflow: k, next_step: DONE}\n",
		"k": "workflow: {id: k}\nsteps:\n  - {id: a, agent: {type: t}, on: [gpu], next_step: DONE}\n",
	}))
	if faults != nil {
		t.Error(faults)
	}
}
