package serve

import (
	"context"
	"runtime/debug"
	"time"
)

// lookAtMemory is how often the daemon checks for memory to return.
const lookAtMemory = 15 * time.Second

// giveBack returns memory to the system when the work that needed it is over. The runtime takes
// many minutes for that, and a daemon mostly waits for people.
func giveBack(ctx context.Context) {
	look := time.NewTimer(lookAtMemory)
	defer look.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			look.Reset(now.Truncate(lookAtMemory).Add(lookAtMemory).Sub(now)) // when the daemon wakes anyway
			var s debug.GCStats
			debug.ReadGCStats(&s)
			if r.is(s.NumGC) {
				debug.FreeOSMemory()
			}
		}
	}
}

// rest reports once that no memory was collected between two looks: little is going on.
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
	r.collected++ // the collection that giving back starts with is no work
	return true
}
