//go:build race

package engine

// raceOn: the race detector makes everything slower by far, so fewer histories are played.
const raceOn = true
