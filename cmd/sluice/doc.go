// Command sluice turns a repo's `.workflow/` folder into a gated pipeline for coding agents.
//
// A command (cmd_*.go, one file each or one for a few that belong together) asks internal/workspace for the repo it is about and
// for whoever serves it, calls the room that has the matter, and prints what came of it. internal/serve makes a process that
// serves repos. Nothing here decides anything about a run.
//
// Reading order: run.go (from arguments to an exit code), app.go (what every command has), root.go (the tree), then any command.
package main
