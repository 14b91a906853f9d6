// Package daemon runs the engine: per repo one queue, one goroutine that decides, one journal that is synced before
// anything acts, and the effects in flight. It offers a local API on a unix socket, and its client.
//
// It knows the world by the interface World alone; a simulation puts a world of its own under the same loop.
//
// Reading order: world.go (what the loop needs), core.go (decide, journal, apply; no goroutine), repo.go (the loop),
// scan.go (reading inboxes: all of them, or those that a hint was about), effects.go (what is in flight), export.go (the
// readable copies) and past.go (the check of old records), both behind the loop, server.go and client.go (the API),
// lock.go.
package daemon
