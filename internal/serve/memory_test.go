package serve

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestMemoryIsGivenBackOnceAtRest: memory is not returned while work goes on, and then once.
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

// TestDenseUntilUsual: garbage is collected more often than usual until the first rest, and never less often.
func TestDenseUntilUsual(t *testing.T) {
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	for _, x := range []struct{ usual, want int }{{100, densePercent}, {10, 10}, {-1, -1}} {
		debug.SetGCPercent(x.usual)
		usual := dense()
		if got := debug.SetGCPercent(x.want); got != x.want {
			t.Errorf("GOGC %d: %d, want %d", x.usual, got, x.want)
		}
		usual()
		if got := debug.SetGCPercent(x.usual); got != x.usual {
			t.Errorf("GOGC %d: %d after it", x.usual, got)
		}
	}
}

// TestHoldEndsWithTheFirstCollection: a hold ends with the usual amount of garbage, and then the settings
// of the runtime are what they were before.
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

// TestHoldKeepsGOGC: a hold lets garbage grow as GOGC says, here by a tenth of the live heap, not by all of it.
func TestHoldKeepsGOGC(t *testing.T) {
	percent := debug.SetGCPercent(10)
	defer debug.SetGCPercent(percent)
	const mib = 64
	live := make([]byte, mib<<20)
	debug.FreeOSMemory()
	var r rest
	r.hold()
	made := 0
	for ; r.held.Load() && made < mib; made++ {
		waste(make([]byte, 1<<20))
		runtime.Gosched()
	}
	if made > mib/2 {
		t.Errorf("%d MiB of garbage beside %d MiB", made, len(live)>>20)
	}
	for r.held.Load() {
		runtime.GC()
	}
	runtime.KeepAlive(live)
}

//go:noinline
func waste([]byte) {}
