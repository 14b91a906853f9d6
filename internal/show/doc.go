// Package show has what commands show of runs. Gather reads what one needs to decide at a gate, or to know of a step, from a run's
// status, its spec and the files of the attempt; Print and PrintDiff write it for a person. `sluice show`, the screens and the
// demo show the same. Runs and Status print how runs stand, Inbox has what waits for a person, Explain says why a step is where
// it is, Tail prints and follows what an agent prints.
//
// Reading order: gather.go, print.go, reply.go, status.go, inbox.go, log.go, tail.go.
package show
