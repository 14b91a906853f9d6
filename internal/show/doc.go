// Package show has what commands show of runs. Gather collects what a person needs to decide at a
// gate, or to know about a step, from a run's status, its spec and the attempt's files; Print and
// PrintDiff write it. `sluice show`, the screens and the demo use them. Runs and Status print the
// state of runs, Inbox returns what waits for a person, Explain prints a step's history, Tail
// prints and follows an agent's output.
//
// Reading order: gather.go, print.go, diff.go, findings.go, reply.go, status.go, inbox.go, log.go, tail.go.
package show
