package serve

import (
	"testing"
	"time"
)

func TestTheWatchdogIsFedByTheLoops(t *testing.T) {
	d := &watchdog{beats: map[string]time.Time{}}
	now := time.Now()
	if !d.well(now) {
		t.Error("no repo, and not well")
	}
	d.beat("a")
	d.beat("b")
	if !d.well(now) {
		t.Error("both came round, and not well")
	}
	d.beats["a"] = now.Add(-2 * loopMost)
	if d.well(now) {
		t.Error("one hangs, and all is well")
	}
	d.forget("a")
	if !d.well(now) {
		t.Error("a repo that is not served any more makes it unwell")
	}
}
