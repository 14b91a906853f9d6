package engine

import "testing"

// TestListWords: what a list says of its tasks reads well on one line, without the output of their processes.
func TestListWords(t *testing.T) {
	l := &TaskList{Tasks: []*Task{{ID: "T1", State: TaskDone, Runs: 1},
		{ID: "T2", State: TaskFailed, Runs: 3, Why: "work: fail: exit code 7: “no module”\n\nstdout:\nlooking\nno module"},
		{ID: "T3", State: TaskFailed, Held: true, Runs: 1}}}
	want := "1 of 3 tasks are done.\nT2 is failed: work: fail: exit code 7: “no module”.\nT3 is failed: its run was aborted by a person"
	if got := l.words(Tally{Total: 3, Done: 1}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
