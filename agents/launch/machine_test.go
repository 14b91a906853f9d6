package launch

import (
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/layout"
)

// TestTheMachinesStartIsKnownAgain: another start of the daemon in the same start of the machine changes nothing.
func TestTheMachinesStartIsKnownAgain(t *testing.T) {
	state, first := t.TempDir(), time.Now()
	for i := range 2 {
		got, err := bootedIn(state, first.Add(time.Duration(i)*time.Hour))
		if err != nil || !got.Since.Equal(first) {
			t.Errorf("start %d: %v %v", i, got, err)
		}
	}
	if err := layout.Save(state+"/"+bootFile, boot{ID: "another", Since: first}); err != nil {
		t.Fatal(err)
	}
	later := first.Add(time.Hour)
	if got, err := bootedIn(state, later); err != nil || !got.Since.Equal(later) {
		t.Errorf("after a restart of the machine: %v %v", got, err)
	}
}

// TestFailedAsTheMachineWentDown: an agent that is stopped with the machine may exit with its own
// code before its host knows. That does not count as a failure; earlier and much later failures do.
func TestFailedAsTheMachineWentDown(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	ls := &Launches{opt: Options{PutDown: func() time.Time { return at }, Now: time.Now}}
	for _, c := range []struct {
		what        string
		began, over time.Duration // from then
		exit        engine.Exit
		want        string
	}{
		{"a code of its own", -time.Hour, time.Second, engine.Exit{Code: 1}, engine.ClassLimit},
		{"a signal", -time.Hour, 10 * time.Minute, engine.Exit{Code: -1, Signal: "killed"}, engine.ClassLimit},
		{"it was done", -time.Hour, time.Second, engine.Exit{}, ""},
		{"long after", -time.Hour, endingMost + time.Second, engine.Exit{Code: 1}, ""},
		{"before", -time.Hour, -time.Second, engine.Exit{Code: 1}, ""},
		{"begun after", time.Second, 2 * time.Second, engine.Exit{Code: 1}, ""},
	} {
		x := c.exit
		ls.forgive(&x, at.Add(c.began), at.Add(c.over))
		if x.Class != c.want {
			t.Errorf("%s: %+v", c.what, x)
		}
	}
}
