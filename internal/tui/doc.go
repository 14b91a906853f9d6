// Package tui has the live screens. Nothing of them is said by colour alone, and all foreign text (names, summaries,
// agents' words) is cleaned before it is drawn.
//
// Run is the screen of `sluice top`: all repos, runs, steps and gates, what waits for a person first, and keys to look
// and to decide. It is a value that messages change (Model), without I/O or a clock, so it is tested without a
// terminal. A Host, which cmd/sluice is, does the rest. A follower per repo reads it whole once, follows the facts of
// its journal from there, and asks again only about runs that facts came from: a refresh costs what has changed.
// Reading order: host.go, model.go, rows.go, view.go, keys.go, follow.go.
//
// Follow shows one run, as `sluice run` does, until it ends: on a screen (runscreen.go, runkeys.go, runfoot.go), or line
// by line where there is no terminal (runfollow.go).
package tui
