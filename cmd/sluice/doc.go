// Command sluice turns a repo's `.workflow/` folder into a gated pipeline for coding agents.
//
// A command (cmd_*.go, one file each or one for related commands) asks internal/workspace for its
// repo and for the process that serves it, calls the right package, and prints the result.
// internal/serve creates a process that serves repos. Nothing here decides anything about a run.
//
// Reading order: run.go (from arguments to an exit code), app.go (what every command has), root.go
// (the tree), then any command.
package main
