package test

import (
	"strings"
	"testing"
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
