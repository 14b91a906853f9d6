// Package engine decides: it holds the vocabulary of sluice and the pure functions that say what a run does next.
//
// Three nouns are kept apart. An Event is what the world told us; it may be late, doubled or a lie. A Fact is what we
// decided; it is journaled and never decided again. An Effect is what we owe the world; it is derived from the state
// each time and never stored.
//
//	facts := engine.Decide(state, specs, event, at)   // reads only
//	journal.Append(event, facts)                      // synced by the caller
//	state.Apply(at, facts...)                         // the only writer
//	for e := range state.Owed() { … }                 // the caller carries them out; what comes of one is an Event
//
// The package is pure: no file, clock, goroutine, context or logger (a test holds this). It is total: every event in
// every state has an answer. What cannot be panics with "engine: …"; a bad event is a fact Ignored with its reason.
//
// DESIGN.md beside this file tells the rules with their numbers.
package engine
