package serve

import "testing"

// TestMemoryIsGivenBackOnceAtRest: not while work goes on, and not again before there was some.
func TestMemoryIsGivenBackOnceAtRest(t *testing.T) {
	var r rest
	for i, look := range []struct {
		collected int64
		want      bool
	}{{3, false}, {7, false}, {7, true}, {8, false}, {8, false}, {9, false}, {9, true}, {10, false}, {30, false}, {31, false}, {31, true}} {
		if got := r.is(look.collected); got != look.want {
			t.Errorf("look %d at %d collections: %v", i, look.collected, got)
		}
	}
}
