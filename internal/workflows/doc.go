// Package workflows finds and checks the workflows of a repo. File finds one by its id, Load reads it,
// Ready checks that its agents can be started, Request makes the event that asks for a run. Package specs
// checks the spec itself; this package checks what a run reads besides: settings, prompts, stub scripts.
//
// Reading order: workflows.go, request.go, faults.go.
package workflows
