// Package tui has the live screens. Colour alone never carries information, and all foreign text
// (names, summaries, agents' words) is cleaned before it is drawn.
//
// Run shows all repos, runs, steps and gates, with what waits for a person first, and keys to look
// and to decide. Follow shows one run until it ends, Show the page of one gate; one.go has what
// differs. Without a terminal Follow prints lines (runfollow.go). The Model changes by messages only, without I/O or a
// clock, so tests need no terminal. A Host, implemented in package host, does the rest. A follower
// per repo reads it whole once, follows the facts of its journal from there, and asks again only
// about runs with new facts: a refresh costs what has changed. Reading order: host.go, model.go,
// rows.go, view.go, keys.go, follow.go, one.go.
package tui
