//go:build linux

package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
)

// factsOf are the facts of a repo's journal, asked of who serves it.
func (w *world) factsOf() []engine.Fact {
	w.t.Helper()
	c := daemon.NewClient(w.stateDir())
	defer c.Close()
	var out []engine.Fact
	if err := c.Facts(context.Background(), "", 0, false, func(l daemon.Line) error {
		f, err := engine.DecodeFact(l.Fact)
		out = append(out, f)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// byTerminal says that a person decided it at a terminal.
func byTerminal(by *engine.Actor) bool { return by != nil && by.Via == "terminal" && by.Who != "" }

// TestTopDecides: a fail with words of several lines and a pass arrive as facts, via the terminal, and the terminal is left
// as it was.
func TestTopDecides(t *testing.T) {
	w, sluice := gated(t)
	w.serve(sluice)
	if code, out := w.binary(sluice, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	win := w.inTerminal(80, 24, sluice+" top")
	win.sees(`^› \? G review of w-1 asks you`)
	win.types("Enter")
	win.sees(`^\+hello`)
	win.types("f")
	win.sees(`^fail G #1: what is wrong\?`)
	win.types("two lines,", "M-Enter", "please")
	win.sees(`^  please▏`)
	win.types("Enter")
	win.sees(`G is at round 2 by now`)
	win.types("Escape")
	win.sees(`^› \? G review of w-1 asks you .* failed 1/`)
	win.types("p")
	if strings.Contains(win.sees(`has just changed|^. ✓ w-1 +completed`), "has just changed") { // it was too fast to have been read
		win.types("p")
	}
	win.sees(`^. ✓ w-1 +completed`)
	win.types("q")
	if last := win.sees(`^rc=0`); strings.Contains(last, "q quit") {
		t.Errorf("at the end the terminal shows:\n%s", last)
	}
	facts := w.factsOf()
	if !slices.ContainsFunc(facts, func(f engine.Fact) bool {
		x, ok := f.(engine.RoundFailed)
		return ok && x.Gate == "G" && x.N == 1 && x.Feedback == "two lines,\nplease" && byTerminal(x.By)
	}) {
		t.Error("no fact tells the fail")
	}
	if !slices.ContainsFunc(facts, func(f engine.Fact) bool {
		x, ok := f.(engine.RoundPassed)
		return ok && x.Gate == "G" && x.N == 2 && byTerminal(x.By)
	}) {
		t.Error("no fact tells the pass")
	}
}

// serve has a daemon serve the repo until the test ends; stop ends it before.
func (w *world) serve(sluice string) (stop func()) {
	w.t.Helper()
	if code, out := w.binary(sluice, "watch", "add"); code != 0 {
		w.t.Fatal(out)
	}
	stop = w.background(sluice, "daemon")
	w.until(`^served`, "watch", "ls")
	return stop
}
