// Package serve creates a daemon from all its parts and serves repos: Daemon serves the watched
// ones until it is stopped, InFront the one of a command while that lasts. Only this package knows
// every concrete type.
//
// It also follows changing settings, writes the log with its priorities, feeds the service
// manager's watchdog, returns memory to the system and records profiles. Inner runs the commands
// that this binary starts for itself.
//
// Reading order: parts.go, daemon.go, host.go, settings.go, follow.go, inner.go, then the rest.
package serve
