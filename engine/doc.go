// Package engine decides: it holds sluice's vocabulary and the pure functions that decide what a
// run does next.
//
// It keeps three nouns apart. An Event is what the world reported; it may be late, repeated or
// false. A Fact is what we decided; it is journaled and never decided again. An Effect is what we
// owe the world; it is derived from the state each time and never stored.
//
//	facts := engine.Decide(state, specs, event, at) // has applied the facts when it returns
//	journal(event, facts)                           // synced before anything is shown or acted on
//	for _, who := range state.Changed(specs) {      // whose debts may have changed
//		effects = state.OwedBy(effects[:0], who, specs)
//		carryOut(effects) // what comes of each is an Event
//	}
//	wake := state.Wake(at) // when to decide on Ticked
//
// What the caller owes in return: facts are journaled before anything is done or shown because of
// them. If they cannot be, the state is discarded and rebuilt from the journal, as at each start:
// state.Apply(at, facts...). One goroutine at a time uses the state, and copies from an Effect what
// outlives the next decision. An effect is carried out for as long as it is owed; doing it twice is
// harmless.
//
// The package is pure: no file, clock, goroutine, context or logger (a test checks this). It is
// total: every event in every state has an answer. The impossible panics with "engine: …"; a bad
// event becomes a fact Ignored with its reason.
//
// DESIGN.md beside this file describes the structure, the reading order and the numbered rules.
package engine
