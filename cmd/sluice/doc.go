// Command sluice turns a repo's `.workflow/` folder into a gated pipeline for coding agents.
//
// It is the one place where the packages meet: commands (cmd_*.go, one file each or one for a few that belong together)
// ask internal/workspace for the repo they are about and for whoever serves it; wire.go alone builds a process that serves
// repos out of its parts. Nothing here decides anything about a run.
//
// Reading order: run.go (from arguments to an exit code), app.go (what every command has), root.go (the tree), wire.go, then
// any command.
package main
