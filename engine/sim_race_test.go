//go:build race

package engine

// raceOn: the race detector is much slower, so fewer histories are played.
const raceOn = true
