package launch

import (
	"context"
	"testing"
)

// TestAgentsWithoutALimitCount: a limit that is set while agents run counts them.
func TestAgentsWithoutALimitCount(t *testing.T) {
	t.Parallel()
	var all Slots
	first, second := slot{of: &all}, slot{of: &all}
	if err := first.take(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := second.take(ctx, 1, cancel); err == nil {
		t.Error("a second agent starts beside the first, with one slot")
	}
	second.leave()
	first.leave()
	if n := all.InUse(); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}
