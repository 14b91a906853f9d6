//go:build race

package journal

// The long tests do a part of their work under the race detector: they run in
// one goroutine, and are done in full without it.
const thin = 11
