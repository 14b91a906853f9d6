package work

import (
	"testing"
)

func TestOldChildren(t *testing.T) {
	newest, keep := map[string]int{"goal": 5, "a-1.b": 3}, map[string]bool{"goal-5": true, "goal-4": true, "a-1.b-3": true}
	for run, want := range map[string]bool{
		"goal-3.T1.1": true, "goal-4.T1.1": false, "goal-5.T-2.1": false, "goal-3.T-2.1.code.1": true, "goal-6.T1.1": false,
		"a-1.b-2.T.1": true, "a-1.b-3.T.1": false, "other-1.T.1": false,
	} {
		if got := oldChild(run, newest, keep); got != want {
			t.Errorf("%s: %v", run, got)
		}
	}
}
