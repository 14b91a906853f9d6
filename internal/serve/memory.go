package serve

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"sluice/internal/alarm"
)

const (
	// lookAtMemory is how often the daemon checks for memory to return.
	lookAtMemory = 15 * time.Second
	// quietBytes are allocated at most between two looks while little happens.
	quietBytes = 1 << 20
	// leastHeap is the size to which the runtime lets any heap grow by default.
	leastHeap = 4 << 20
	// densePercent is GOGC, at most, until the daemon first rests.
	densePercent = 50
)

// giveBack returns memory to the system when the work that needed it is over. The runtime takes
// many minutes for that, and a daemon mostly waits for people.
func giveBack(ctx context.Context) {
	var r rest
	usual := dense()
	alarm.Every(ctx, lookAtMemory, func() {
		if r.is(measure("/gc/heap/allocs:bytes")[0]) {
			usual()
			debug.FreeOSMemory()
			unmapProgram()
			r.hold()
		}
	})
}

// dense collects garbage more often until the returned function is called. What a start allocates stays as
// long as the daemon, and garbage between leaves gaps that are seldom used again.
func dense() (usual func()) {
	percent := debug.SetGCPercent(densePercent)
	usual = func() { debug.SetGCPercent(percent) }
	if percent < densePercent { // also if it is off
		usual()
	}
	return usual
}

// rest detects that little happens, and stops garbage collection meanwhile.
type rest struct {
	allocated uint64      // in bytes, at the last look
	held      atomic.Bool // garbage collection is stopped
}

// is reports whether it is time to collect what is left: little was allocated since the last look.
func (r *rest) is(allocated uint64) bool {
	quiet := allocated-r.allocated < quietBytes
	r.allocated = allocated
	return quiet && !r.held.Load()
}

// hold stops garbage collection until there is about as much garbage as the runtime waits for anyway.
// Otherwise an idle process collects every two minutes (forcegcperiod of Go 1.26), which wakes it some
// seventy times. The first collection ends the hold.
func (r *rest) hold() {
	now := measure("/memory/classes/total:bytes", "/memory/classes/heap/released:bytes", "/gc/heap/live:bytes")
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	more := max(now[2], leastHeap)
	if percent >= 0 {
		more = more * uint64(percent) / 100
	}
	debug.SetMemoryLimit(min(limit, int64(now[0]-now[1]+more)))
	r.held.Store(true)
	collected := &struct{ _ *int }{} // a pointer: tiny objects without one may outlive a collection
	runtime.AddCleanup(collected, func(struct{}) {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
		r.held.Store(false)
	}, struct{}{})
}

// measure returns the runtime's metrics with these names.
func measure(names ...string) (out []uint64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		out = append(out, s.Value.Uint64())
	}
	return out
}
