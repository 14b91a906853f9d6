package serve

import (
	"strings"
	"testing"

	"sluice/agents/launch"
)

// Late work of a run that `sluice clean` has removed is not kept: nothing would remove it again.
func TestLateWorkOfARemovedRun(t *testing.T) {
	t.Parallel()
	s := launch.Sent{Key: "far-1/A#1.2", Run: "far-1", Step: "A", N: 1, Dir: ".workflow/runs/far-1/A.1/launch-2"}
	kept, why, err := keepLate(t.Context(), t.TempDir(), nil, nil, s, launch.Back{})
	if kept != "" || !strings.Contains(why, "has been removed") || err != nil {
		t.Errorf("%q, %q, %v", kept, why, err)
	}
}
