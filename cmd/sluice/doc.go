// Command sluice turns a repo's `.workflow/` folder into a gated pipeline for coding agents.
//
// It is the one place where the packages meet: commands (cmd_*.go, one file each or one for a few that belong together)
// talk to a service (service.go), which is the client of whatever process serves the repo; wire.go alone builds that
// process out of its parts. Nothing here decides anything about a run.
//
// Reading order: run.go (from arguments to an exit code), app.go (what every command has), root.go (the tree),
// service.go, wire.go, then any command. Where things lie is internal/workspace's.
package main
