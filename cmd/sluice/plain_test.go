package main

import (
	"strings"
	"testing"
	"time"
)

// TestNoColourWithoutATerminal: what goes to a pipe is plain.
func TestNoColourWithoutATerminal(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/specs/w.yaml", "workflow: {id: w}\nsteps:\n  - {id: A, run: \"true\", next_step: DONE}\n")
	for _, args := range [][]string{{"help"}, {"validate"}, {"doctor"}, {"config"}, {"graph", "w"}, {"status"}, {"nonsense"}} {
		_, out, errs := w.sluice(args...)
		if strings.Contains(out+errs, "\x1b") {
			t.Errorf("%v: %q", args, out+errs)
		}
	}
}

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
