//go:build race

package journal

// Under the race detector, the long tests do only a part: they run in one goroutine, and run in
// full without it.
const thin = 11
