// Package engine decides: it holds the vocabulary of sluice and the pure functions that say what a run does next.
//
// Three nouns are kept apart. An Event is what the world told us; it may be late, doubled or a lie. A Fact is what we
// decided; it is journaled and never decided again. An Effect is what we owe the world; it is derived from the state
// each time and never stored.
//
//	facts := engine.Decide(state, specs, event, at)   // decides, and has applied the facts when it returns
//	journal(event, facts)                             // the caller's, synced before anything is shown or acted on
//	for _, who := range state.Changed(specs) {        // whose debts may have changed
//		effects = state.OwedBy(effects[:0], who, specs) // the caller carries them out; what comes of one is an Event
//	}
//	wake := state.Wake(at)                            // when to decide on Ticked
//
// A start folds the journaled facts instead: state.Apply(at, facts...). Where they could not be journaled, the state is
// thrown away and folded anew.
//
// The package is pure: no file, clock, goroutine, context or logger (a test holds this). It is total: every event in
// every state has an answer. What cannot be panics with "engine: …"; a bad event is a fact Ignored with its reason.
//
// DESIGN.md beside this file tells how it is built, in which order to read it, and the rules with their numbers.
package engine
