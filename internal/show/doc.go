// Package show has what one needs to decide at a gate, or to know of a step: Gather reads it from a run's status, its spec and
// the files of the attempt, Print and PrintDiff write it for a person. `sluice show`, the screens and the demo show the same.
// Tail prints and follows what an agent prints.
//
// Reading order: gather.go, print.go, reply.go, tail.go.
package show
