package main

import (
	"time"

	"sluice/daemon"
	"sluice/internal/render"
	"sluice/internal/text"
)

// mark is the sign and the colour of a state of a run, a step or a gate.
func mark(state string) (sign, style string) { return render.Mark(state) }

// ago is a span of time as a person says it.
func ago(d time.Duration) string { return render.Ago(d) }

// plural is "1 run", "2 runs".
func plural(n int, one string) string { return text.Plural(n, one) }

// clean is foreign text on one line.
func clean(s string) string { return text.Line(s) }

// stubWords is what is said of a run with --stub wherever its state is shown.
const stubWords = "stubbed: stand-ins play its agents, nothing in it is real work"

// stubMark is that in a word.
func stubMark(stubbed bool) string {
	if stubbed {
		return " (stubbed)"
	}
	return ""
}

// runState is a run's phase, or that it is paused.
func runState(r daemon.RunStatus) string {
	if r.Paused != "" && r.Live() {
		return "paused"
	}
	return r.Phase
}
