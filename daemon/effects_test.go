package daemon

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// yard is a World in which effects wait to be let go.
type yard struct {
	World
	mu        sync.Mutex
	now, most int // moves under way
	notices   int
	let       chan struct{}
}

func (y *yard) Carry(ctx context.Context, job job.Job, _ func(engine.Event)) engine.Event {
	y.mu.Lock()
	if job.Kind == engine.DoMove {
		y.now++
		y.most = max(y.most, y.now)
	} else {
		y.notices++
	}
	y.mu.Unlock()
	select {
	case <-y.let:
	case <-ctx.Done():
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if job.Kind == engine.DoMove {
		y.now--
	}
	return nil
}

func (y *yard) under(moves, notices int) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now == moves && y.notices == notices
}

// TestOneWatchOfAPullRequest: two would take in the same comment, and answer it twice.
func TestOneWatchOfAPullRequest(t *testing.T) {
	watch := func(run, at string) string {
		return lane(engine.Effect{Kind: engine.DoForge, Key: run + "/forge " + at, Run: run})
	}
	if watch("x-1", "A.1 GA#1 human") != watch("x-1", "A.2") || watch("x-1", "A.1") == watch("x-2", "A.1") {
		t.Error("what follows a run's pull request does not wait for what followed it before, or waits for another run's")
	}
}

// dues is what is owed, by debtor.
type dues map[engine.Debtor]engine.Effect

func (l dues) owedBy(out []engine.Effect, who engine.Debtor) []engine.Effect {
	if e, ok := l[who]; ok {
		out = append(out, e)
	}
	return out
}

func (l dues) job(e engine.Effect) job.Job { return job.Job{Effect: e} }

// TestMovesAreBounded: of a burst of files not all are moved at once, and all are; notices wait for
// nothing.
func TestMovesAreBounded(t *testing.T) {
	const files, notices = 500, 3 * movesMost
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	y := &yard{let: make(chan struct{})}
	landed := make(chan *flight, files+notices)
	f := newFlights(ctx, y, func(do func()) { all.Go(do) }, func(it item) { landed <- it.landed })
	owed := dues{}
	var changed []engine.Debtor
	owe := func(kind string, n int) {
		for i := range n {
			e := engine.Effect{Kind: kind, Key: fmt.Sprintf("%s-%d", kind, i)}
			owed[e.Debtor()] = e
			changed = append(changed, e.Debtor())
		}
	}
	owe(engine.DoMove, files)
	owe(engine.DoNotify, notices)
	f.reconcile(changed, owed, time.Now())
	for until := time.Now().Add(30 * time.Second); !y.under(movesMost, notices); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d moves, %d notices are under way", y.now, y.notices)
		}
	}
	gone := engine.Debtor{Kind: engine.DoMove, ID: fmt.Sprintf("%s-%d", engine.DoMove, files-1)}
	delete(owed, gone) // while it waited
	close(y.let)
	for done := range files - 1 + notices {
		select {
		case fl := <-landed:
			delete(owed, fl.effect.Debtor())
			f.land(fl, time.Now())
			f.reconcile([]engine.Debtor{fl.effect.Debtor()}, owed, time.Now())
		case <-time.After(30 * time.Second):
			t.Fatalf("after %d nothing lands any more: %d queued", done, len(f.queued))
		}
	}
	if y.most > movesMost || len(owed) > 0 || f.moving != 0 || len(f.queued) > 0 || len(f.by) > 0 || len(f.lanes) > 0 {
		t.Errorf("at most %d moves at once; %d owed, %d moving, %d queued, %d debtors, %d lanes", y.most, len(owed), f.moving, len(f.queued), len(f.by), len(f.lanes))
	}
}
