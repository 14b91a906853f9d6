package people

import (
	"testing"

	"sluice/notify"
)

// TestPressesAreBounded: who presses much holds up nothing.
func TestPressesAreBounded(t *testing.T) {
	dropped := 0
	p := New(Options{Logf: func(string, ...any) { dropped++ }})
	for range 3 * pressesMost {
		p.Pressed(notify.Press{Slot: "x", Key: pressApprove})
	}
	if len(p.presses) != pressesMost || dropped != 2*pressesMost {
		t.Errorf("%d wait, %d dropped", len(p.presses), dropped)
	}
}
