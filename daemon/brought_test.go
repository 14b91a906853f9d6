package daemon

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
)

// busy is a world whose steps take long. It counts those that it was asked to carry out.
type busy struct {
	*stage
	mu    sync.Mutex
	steps int
}

func (b *busy) Carry(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	if j.Kind != engine.DoRun || j.Proc.Kind != engine.ProcStep {
		return b.stage.Carry(ctx, j, emit)
	}
	b.mu.Lock()
	b.steps++
	b.mu.Unlock()
	<-ctx.Done()
	return nil
}

// TestNothingBeginsWithoutItsWork: a leader that is stopped while it brings the work of a run launches nothing of it.
func TestNothingBeginsWithoutItsWork(t *testing.T) {
	root := t.TempDir()
	state := filepath.Join(root, "state")
	cfg := engine.DefaultConfig()
	life := func(world World, brought func(context.Context, string, Work) string, do func(*Repo)) {
		t.Helper()
		lead := newFakeLead()
		close(lead.turn)
		lead.holds.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Serve(ctx, root, state, func(context.Context, string, string) (RepoOptions, func(), error) {
			l, _, err := journal.Open(state, journal.Options{}) // as Take would
			if err != nil {
				return RepoOptions{}, nil, err
			}
			return RepoOptions{World: world, Compile: twoGates, Config: func() engine.Config { return cfg }, Lead: lead,
				Brought: func(ctx context.Context, run string, w Work) string { cancel(); return brought(ctx, run, w) }}, nil, l.Close()
		}, func(r *Repo, _ journal.Recovery) {
			if do != nil {
				go func() { do(r); cancel() }()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := &busy{stage: newStage()}
	life(first, nil, func(r *Repo) {
		if _, err := r.Do(context.Background(), Do{Kind: "run_requested", Event: []byte(`{"source":"two"}`)}); err != nil {
			t.Error(err)
		}
		for begun := 0; begun == 0; time.Sleep(5 * time.Millisecond) {
			first.mu.Lock()
			begun = first.steps
			first.mu.Unlock()
		}
	})
	cfg.Restarts++ // its start records something, as that of a machine that has followed another does
	second := &busy{stage: newStage()}
	life(second, func(ctx context.Context, _ string, _ Work) string { // is being brought when the service is stopped
		<-ctx.Done()
		return ""
	}, nil)
	if second.steps != 0 {
		t.Errorf("%d steps were begun", second.steps)
	}
}
