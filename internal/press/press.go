// Package press has the one rule for keys that decide at a gate. The screen of `sluice run`, `sluice top` and `sluice
// show` go by it: what was typed ahead, pasted, held down or typed for something else decides nothing, and a pass is
// asked for once more on a line that says what is passed.
package press

import (
	"fmt"
	"time"

	"sluice/internal/text"
)

const (
	// Shown is how long something must be on the screen before a key decides it.
	Shown = time.Second
	// Apart is the least time between two keys that were typed one by one. A key that is held down comes faster or, where
	// the repeat rate is low, as the same key within a second.
	Apart = 50 * time.Millisecond
)

// Guard knows what is on the screen to be decided, since when, and which key was read last.
type Guard struct {
	what  string
	since time.Time

	key           string
	at, begun     time.Time
	several, held bool
}

// Draw is called each time the screen is drawn: what names all that keys decide on it, "" = nothing.
func (g *Guard) Draw(what string, at time.Time) {
	if what != g.what {
		g.what, g.since = what, at
	}
}

// Read takes each key as it is read, before anything goes by it; alone: nothing else came in the same read.
func (g *Guard) Read(key string, alone bool, at time.Time) {
	since := at.Sub(g.at)
	first := g.at.IsZero()
	g.several = !alone || !first && since < Apart
	g.held = !first && key == g.key && since < Shown
	g.key, g.at = key, at
}

// Several reports whether the key that was read last came in one go with others.
func (g *Guard) Several() bool { return g.several }

// Begin begins a decision about what with the key that was read last, or says why it may not.
func (g *Guard) Begin(what string) (why string) {
	if why = g.Ends(what); why == "" && g.held {
		why = g.key + " came twice within a second, or is held down"
	}
	if why != "" {
		return why + ": look at it, then press " + g.key + " once"
	}
	g.begun = g.at
	return ""
}

// Rushed reports whether the key that was read last came in one go with the one that began the
// decision: it was no person's.
func (g *Guard) Rushed() bool { return g.at.Sub(g.begun) < Apart }

// Ends returns why the key that was read last may not end a decision about what; "" = it may.
func (g *Guard) Ends(what string) (why string) {
	switch {
	case g.several:
		return "several keys at once decide nothing"
	case !g.Ripe(what, g.at):
		return "it has only just appeared"
	}
	return ""
}

// Ripe reports whether what is on the screen has been there long enough.
func (g *Guard) Ripe(what string, at time.Time) bool {
	return what != "" && what == g.what && at.Sub(g.since) >= Shown
}

// Pass is what a pass is about.
type Pass struct {
	Run, Gate, GateName string
	Round               int
	Step, StepName      string
	Content             string // digest of the work
	Answer              string // what the pass gives, in words
	Route               string // the route that is taken instead; "" = none
	Untaken             bool   // the run goes on without the work
}

// Bounds of a part of the question, in characters. No id is cut: its end may tell it from another.
const (
	partMost    = 64
	runMost     = 240
	contentMost = 12
)

// Content is the digest of a work as people read it.
func Content(digest string) string {
	return text.Clean(digest[:min(len(digest), contentMost)], contentMost)
}

// Question asks whether it is meant.
func (p Pass) Question() string {
	part := func(s string) string { return text.Clean(s, partMost) }
	verb := "Pass "
	if p.Route != "" {
		verb = "Decide " + part(p.Route) + " at "
	}
	out := fmt.Sprintf("%s%s, round %d of %s", verb, part(text.Title(p.Gate, p.GateName)), p.Round,
		text.Clean(p.Run, runMost))
	if p.Step != "" {
		out += ": step " + part(text.Title(p.Step, p.StepName))
	}
	if p.Content != "" {
		out += ", content " + Content(p.Content)
	}
	if p.Untaken && p.Route == "" {
		out += ", without its work"
	}
	if p.Answer != "" {
		out += ", with " + p.Answer
	}
	return out + "?"
}

// What may be typed at the question, and what is there until it may.
const (
	Answers  = "Enter passes it · any other key goes back"
	TooSmall = "this terminal is too small to say what is passed: make it larger"
	Wait     = "read it: Enter passes it in a second · any other key goes back"
)
