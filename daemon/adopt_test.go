package daemon

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/tools/conform"
)

// patient is a world whose steps work until they are told to end, whoever waits for them.
type patient struct {
	*stage
	mu      sync.Mutex
	alive   map[string]bool // processes
	started []string
	stopped []string
	waiting int
	joined  int // waits that have begun
	end     chan struct{}
}

func (p *patient) Carry(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event {
	if job.Kind == engine.DoStop {
		p.mu.Lock()
		p.stopped = append(p.stopped, job.Key)
		p.mu.Unlock()
	}
	if job.Kind != engine.DoRun || job.Proc.Kind != engine.ProcStep {
		return p.stage.Carry(ctx, job, emit)
	}
	p.mu.Lock()
	if !p.alive[job.Key] {
		p.alive[job.Key] = true
		p.started = append(p.started, job.Key)
	}
	p.waiting++
	p.joined++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-p.end:
		return p.stage.Carry(ctx, job, emit)
	}
}

func (p *patient) waits(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n := p.waiting
		p.mu.Unlock()
		if n == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d launches are waited for, want 1", n)
		}
	}
}

// joins is how many waits for a launch have begun.
func (p *patient) joins() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined
}

func (p *patient) list(of *[]string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(*of, " ")
}

func TestAStopLeavesProcessesAndTheNextStartAdoptsThem(t *testing.T) {
	conform.Rule(t, "3-engine adopt", "a stop of the loop leaves its processes running, the next loop goes on waiting for them")
	root := t.TempDir()
	world := &patient{stage: newStage(), alive: map[string]bool{}, end: make(chan struct{})}
	s := serveTest(t, root, world)
	if _, err := s.client.Do(context.Background(), engine.RunRequested{Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	world.waits(t)
	s.stop()
	if n := world.list(&world.stopped); n != "" {
		t.Errorf("the stop has ended %s", n)
	}
	s = serveTest(t, root, world)
	world.waits(t)
	close(world.end)
	s.until("two-1", "the human gate", func(r RunStatus) bool { return len(r.Waits) == 1 && r.Waits[0].Kind == "human" })
	if got := world.list(&world.started); got != "two-1/A#1.1 two-1/B#1.1" {
		t.Errorf("started %s, want each launch once", got)
	}
	if n := world.list(&world.stopped); n != "" {
		t.Errorf("ended by us: %s", n)
	}
}
