// Package serve makes a daemon of all its parts and has it serve repos: Daemon those that are watched, until it is told to stop;
// InFront the one that a command is about, while the command lasts. It is the one place that knows every concrete type.
//
// What belongs to serving as such lies here too: settings that are followed while they change, the log and its priorities, the
// service manager's watchdog, memory that is given back, profiles. Inner has the commands that this binary runs for itself.
//
// Reading order: parts.go, daemon.go, host.go, settings.go, follow.go, inner.go, then the rest.
package serve
