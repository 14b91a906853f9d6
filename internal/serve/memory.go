package serve

import (
	"context"
	"runtime/debug"
	"time"
)

// lookAtMemory is how often the daemon sees whether it has memory to give back.
const lookAtMemory = 15 * time.Second

// giveBack returns memory to the system when the work is over for which it was needed: the runtime itself does so over
// many minutes, and a daemon waits for people most of its time.
func giveBack(ctx context.Context) {
	look := time.NewTicker(lookAtMemory)
	defer look.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			var s debug.GCStats
			debug.ReadGCStats(&s)
			if r.is(s.NumGC) {
				debug.FreeOSMemory()
			}
		}
	}
}

// rest tells once when no memory was collected from one look to the next: nothing much goes on.
type rest struct {
	collected int64
	told      bool
}

func (r *rest) is(collected int64) bool {
	quiet := collected == r.collected
	r.collected = collected
	if !quiet {
		r.told = false
		return false
	}
	if r.told {
		return false
	}
	r.told = true
	r.collected++ // the collection that giving back begins with is no work
	return true
}
