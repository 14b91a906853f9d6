// Package tui is the live screen of `sluice top`: all repos, runs, steps and gates at a glance, what waits for a person
// first, and keys to look and to decide.
//
// The screen is a value that messages change (Model); it does no I/O and has no clock, so it is tested without a terminal.
// What it wants done it asks of a Host, which cmd/sluice is. How the repos stand comes from a follower each: it reads a repo
// whole once, follows the facts of its journal from there, and asks anew only about the runs that facts came of. So a refresh
// costs what has changed, however many runs there are.
//
// All foreign text (names, summaries, agents' words) is cleaned before it is drawn. A sign tells each state, so that nothing
// is said by colour alone; the colours are the terminal's own.
package tui
