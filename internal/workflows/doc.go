// Package workflows has the workflows of a repo: File finds one by its id, Load reads it, Ready says whether the agents of its
// roles can be started, and Request makes the event that asks for a run of it. Beside the faults of a spec, which package specs
// has, it has those of all else that a run of it reads: settings, prompts and the scripts of stand-ins.
//
// Reading order: workflows.go, request.go, faults.go.
package workflows
