//go:build race

package daemon

// The simulation plays a part of its histories under the race detector.
const thin = 20
