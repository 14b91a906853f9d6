//go:build !race

package daemon

import (
	"testing"

	"sluice/engine"
)

// eventAllocsMost is what an event allocates today from the loop's turn to its record in the journal, and some room. It
// does not depend on the machine.
const eventAllocsMost = 37

// TestAllocationsOfAnEvent bounds what the loop allocates for an event that is decided, journaled and followed by a look
// at what is owed. The race detector allocates too: .ci/tests runs it without.
func TestAllocationsOfAnEvent(t *testing.T) {
	b := handled(t)
	last, _ := b.core.log.Last()
	const pairs = 100
	got := testing.AllocsPerRun(pairs, func() {
		b.turn(engine.PauseRequested{Run: "two-1"})
		b.turn(engine.ResumeRequested{Run: "two-1"})
	}) / 2
	if now, _ := b.core.log.Last(); now < last+2*pairs {
		t.Fatalf("%d records for %d events", now-last, 2*pairs)
	}
	t.Logf("%.0f allocations", got)
	if got > eventAllocsMost {
		t.Errorf("%.0f allocations for an event, at most %d", got, eventAllocsMost)
	}
}
