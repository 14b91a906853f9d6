package daemon

import (
	"testing"
	"time"

	"sluice/engine"
)

// TestRest: a repo rests once a whole scan has found nothing and nothing is under way. What is
// decided, or a scan that fails, ends the rest.
func TestRest(t *testing.T) {
	b := handled(t)
	b.opt.Rescan, b.opt.Rest = 5*time.Second, time.Minute
	scanned := func(want bool, when string) {
		t.Helper()
		b.batch(item{began: b.now})
		if got := b.atRest(); got != want {
			t.Errorf("%s: it rests: %v, want %v", when, got, want)
		}
	}
	scanned(false, "a step runs")
	key := b.run().Current("A").Key
	b.turn(engine.AbortRequested{Run: "two-1"}, engine.ProcessEnded{Run: "two-1", Key: key, Exit: engine.Exit{Stopped: true}})
	if b.run().Live() || len(b.run().Procs) > 0 {
		t.Fatalf("the run lives: %+v", b.run())
	}
	b.batch(item{began: b.now, part: true, scan: []engine.Event{engine.FileSeen{Name: "x"}}})
	if b.atRest() {
		t.Error("it rests after a file was seen")
	}
	scanned(true, "nothing is under way")
	c := newClocks(&b.opt)
	defer c.stop()
	rest := c.toRescan()
	b.resting = true
	c.set(b.resting)
	if most := b.opt.Rescan; rest > most {
		t.Errorf("the next rescan is %s away, at most %s", rest, most)
	}
	if got, want := c.toRescan(), b.now.Truncate(time.Minute).Add(time.Minute).Sub(b.now); got != want {
		t.Errorf("at rest, the next rescan is %s away, want %s", got, want)
	}
	b.turn()
	if c.follow(b.resting); !b.resting || !c.rest {
		t.Error("a turn without a decision ends the rest")
	}
	b.turn(engine.RunRequested{Workflow: "two", Source: "two", Digest: digestOf("two")})
	if c.follow(b.resting); b.resting || c.rest || !b.marked.Equal(b.wall) {
		t.Error("a decision does not end the rest, or the mark is as old as the rest")
	}
}

// TestRestIsNoLongerThanADeadlineAllows: the mark of being served is not older than a deadline.
func TestRestIsNoLongerThanADeadlineAllows(t *testing.T) {
	b := handled(t)
	b.scans.clean, b.opt.Rest = true, time.Minute
	run := b.run()
	run.Procs = nil
	run.Current("A").State = engine.Gating
	if at := b.nextWake(); at.IsZero() {
		t.Fatal("nothing comes due")
	}
	for left, want := range map[time.Duration]bool{3 * time.Minute: true, time.Minute: false} {
		b.now = b.nextWake().Add(-left)
		if got := b.atRest(); got != want {
			t.Errorf("%s before a deadline it rests: %v", left, got)
		}
	}
	b.now = b.nextWake().Add(-3 * time.Minute)
	run.Current("A").State = engine.Running // on offer: it has no process
	if b.atRest() {
		t.Error("it rests while a step is on offer")
	}
}
