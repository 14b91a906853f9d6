//go:build linux

package world

import (
	"strings"
	"testing"

	"sluice/engine"
)

const (
	refusedSpec = `
workflow: {id: w, workspace: run, on_done: {land: squash}}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
gates:
  - {id: G, reviewer: {level: auto, run: "false"}, on_pass: {next_step: DONE}, on_fail: {next_step: DONE}}
`
	refusedRowSpec = `
workflow: {id: w, workspace: run, on_done: {land: squash}}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: F}
gates:
  - {id: F, reviewer: {level: auto, run: "true"}, on_pass: {next_gate: G}, on_fail: {next_step: DONE}}
  - {id: G, reviewer: {level: auto, run: "false"}, on_pass: {next_step: DONE}, on_fail: {next_step: DONE}}
`
)

// TestRefusedWorkIsNotLanded: what an agent that is not held has put on the branch itself, and a gate has refused, stays off
// the person's branch, also where an earlier gate of the row has passed it.
func TestRefusedWorkIsNotLanded(t *testing.T) {
	for name, source := range map[string]string{"one gate": refusedSpec, "a row": refusedRowSpec} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, source)
			b.hold(false)
			b.script("one", `git config user.name A; git config user.email a@example.org; echo bad >bad.txt; git add -A; git commit -qm bad`)
			b.put(".workflow/specs/w.yaml", source)
			b.sh("git add -A && git commit -qm spec")
			cl, _ := b.loop()
			b.start(cl, source)
			eventually(t, "the run is over", func() bool { return b.status(cl).Phase == engine.RunCompleted })
			if files := b.sh("git ls-tree --name-only sluice/w-1"); !strings.Contains(files, "bad.txt") {
				t.Fatalf("the agent has not put it on the run's branch:\n%s", files)
			}
			if files := b.sh("git ls-tree --name-only main"); strings.Contains(files, "bad.txt") {
				t.Error("the refused work is on main")
			}
			if why := b.status(cl).EndWhy; !strings.Contains(why, "is not what a gate of w-1 has passed") {
				t.Errorf("it ended with %q", why)
			}
		})
	}
}
