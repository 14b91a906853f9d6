// Package daemon runs the engine. Each repo has one queue, one goroutine that decides, one journal
// that is synced before anything acts, and the running effects. It also has the local API on a unix
// socket and its client.
//
// It reaches the world through the interface World; a simulation runs the same loop in its own
// world.
//
// Reading order: world.go (what the loop needs), core.go (decide, journal, apply; no goroutine),
// repo.go (the loop), scan.go (reading all inboxes, or those that were hinted at), effects.go
// (running effects), export.go (the readable copies) and past.go (the check of old records), which
// both run behind the loop, server.go and client.go (the API), lock.go.
package daemon
