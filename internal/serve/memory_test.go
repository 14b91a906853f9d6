package serve

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestMemoryIsGivenBackOnceAtRest: not while work goes on, and not again before there was some.
func TestMemoryIsGivenBackOnceAtRest(t *testing.T) {
	var r rest
	const work = quietBytes
	for i, look := range []struct {
		allocated uint64
		held      bool
		want      bool
	}{{3 * work, false, false}, {4 * work, false, false}, {4*work + 1, false, true}, {4*work + 2, true, false}, {9 * work, true, false}, {20 * work, false, false}, {20 * work, false, true}} {
		r.held.Store(look.held)
		if got := r.is(look.allocated); got != look.want {
			t.Errorf("look %d at %d bytes: %v", i, look.allocated, got)
		}
	}
}

// TestHoldEndsWithTheFirstCollection: at rest nothing is collected, but as soon as there is as much
// garbage as ever it is, and all is as it was before.
func TestHoldEndsWithTheFirstCollection(t *testing.T) {
	percent, limit := debug.SetGCPercent(80), debug.SetMemoryLimit(1<<40)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	var r rest
	for range 2 {
		debug.FreeOSMemory()
		r.hold()
		if !r.held.Load() || debug.SetGCPercent(-1) != -1 {
			t.Fatal("it is not held")
		}
		made := 0
		for end := time.Now().Add(time.Minute); r.held.Load(); made++ {
			if time.Now().After(end) {
				t.Fatalf("%d MiB of garbage, and nothing is collected", made)
			}
			waste(make([]byte, 1<<20))
			runtime.Gosched()
		}
		if p, l := debug.SetGCPercent(80), debug.SetMemoryLimit(-1); p != 80 || l != 1<<40 {
			t.Errorf("then %d %% and at most %d bytes", p, l)
		}
	}
}

//go:noinline
func waste([]byte) {}
