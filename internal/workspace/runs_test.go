package workspace

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sluice/daemon"
	"sluice/engine"
)

// shelf is a Viewer that only knows runs.
type shelf struct {
	Viewer
	runs  []daemon.RunStatus
	asked *[]string // the runs that Status was asked for; nil = not kept
}

func (s shelf) Status(_ context.Context, run string) (daemon.Status, error) {
	if s.asked != nil {
		*s.asked = append(*s.asked, run)
	}
	if run == "" {
		return daemon.Status{Runs: slices.Clone(s.runs)}, nil
	}
	for _, r := range s.runs {
		if r.ID == run {
			return daemon.Status{Runs: []daemon.RunStatus{r}}, nil
		}
	}
	return daemon.Status{}, errors.New("no run is known here")
}

func (s shelf) Run(_ context.Context, id string) (daemon.RunStatus, error) {
	return daemon.RunStatus{ID: id}, nil
}

// TestRunWith: without a run, a gate is that of the run in which it waits, however new the others are.
func TestRunWith(t *testing.T) {
	run := func(id, phase string, attempt, round int, waits ...daemon.Wait) daemon.RunStatus {
		return daemon.RunStatus{ID: id, Phase: phase, Waits: waits, Steps: []daemon.StepStatus{
			{ID: "S", Attempt: attempt, Gates: []daemon.GateStatus{{ID: "G", Round: round}}}}}
	}
	asks := daemon.Wait{Kind: "human", Step: "S", Gate: "G"}
	over, again := run("over", engine.RunCompleted, 1, 1), run("again", engine.RunCompleted, 1, 1)
	queued := run("queued", engine.RunPending, 0, 0, daemon.Wait{Kind: "need"})
	works := run("works", engine.RunRunning, 1, 1, daemon.Wait{Kind: "agent", Step: "S"})
	waits := run("waits", engine.RunRunning, 1, 2, asks)
	for _, c := range []struct {
		runs []daemon.RunStatus
		want string
	}{
		{[]daemon.RunStatus{over, again}, "again"},
		{[]daemon.RunStatus{over, queued, again}, "queued"},
		{[]daemon.RunStatus{works, queued}, "works"},
		{[]daemon.RunStatus{waits, works, queued, again}, "waits"},
	} {
		for _, what := range []string{"S", "G"} {
			if got, err := RunWith(t.Context(), shelf{runs: c.runs}, "", what); err != nil || got.ID != c.want {
				t.Errorf("%s: %q %v, want %s", what, got.ID, err, c.want)
			}
		}
	}
	if got, err := RunWith(t.Context(), shelf{runs: []daemon.RunStatus{waits, queued}}, "queued", "G"); err != nil || got.ID != "queued" {
		t.Errorf("a run that is named: %q %v", got.ID, err)
	}
}

// TestAnIdReadsItsRunAlone: a command about one of many runs has the service describe only that one.
func TestAnIdReadsItsRunAlone(t *testing.T) {
	runs := []daemon.RunStatus{{ID: "w-1", Workflow: "w"}, {ID: "w-2", Workflow: "w"}, {ID: "w-3", Workflow: "w"}}
	for _, c := range []struct {
		name, want string
		asked      []string
	}{
		{"w-2", "w-2", []string{"w-2"}},
		{"w", "w-3", []string{"w", ""}},
		{"last", "w-3", []string{"last", ""}},
		{"x", "", []string{"x", ""}},
	} {
		var asked []string
		got, err := RunNamed(t.Context(), shelf{runs: runs, asked: &asked}, c.name)
		if got != c.want || (err == nil) != (c.want != "") || !slices.Equal(asked, c.asked) {
			t.Errorf("%s: %q %v, asked for %q", c.name, got, err, asked)
		}
	}
}
