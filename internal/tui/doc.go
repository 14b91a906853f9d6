// Package tui has the live screens. Colour alone never carries information, and all foreign text
// (names, summaries, agents' words) is cleaned before it is drawn.
//
// Run is the screen of `sluice top`: all repos, runs, steps and gates, with what waits for a person
// first, and keys to look and to decide. Its Model changes by messages only, without I/O or a
// clock, so tests need no terminal. A Host, implemented in package host, does the rest. A follower
// per repo reads it whole once, follows the facts of its journal from there, and asks again only
// about runs with new facts: a refresh costs what has changed. Reading order: host.go, model.go,
// rows.go, view.go, keys.go, follow.go.
//
// Follow shows one run, as `sluice run` does, until it ends: on a screen (runscreen.go, runkeys.go,
// runfoot.go), or line by line without a terminal (runfollow.go).
package tui
