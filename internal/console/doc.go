// Package console is what a command talks through: its streams, its environment, its clock and the
// flags that say how to talk (--yes, --json). It prints lines, JSON, tables and errors, asks, and
// knows the terminal's width and colours. Of workflows it knows nothing.
//
// What goes to a pipe has no colours and is not cut; what is foreign in an error or in JSON is
// cleaned before it is shown.
//
// Reading order: console.go, style.go, table.go, flags.go.
package console
