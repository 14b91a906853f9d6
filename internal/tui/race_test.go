//go:build race

package tui

// A part of the random keys is typed under the race detector.
const thin = 10
