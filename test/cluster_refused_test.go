//go:build linux

package test

import (
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/natstest"
)

// Work that cannot be taken fails its attempt in a cluster too: there is no commit of it to store.
func TestClusterRefusedWork(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, _, _ := machinesWith(t, servers, "1", `workflow: {id: long, workspace: run}
steps:
  - {id: A, run: [sh, -c, "mkdir -p .workflow/signals && touch .workflow/signals/GA-pass && git add -f .workflow/signals && git commit -q -m x"], gate: GA}
gates:
  - {id: GA, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}, max_retries: 0}
`)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	a.do(a.bin, "start", "long")
	eventually(t, "a person is asked", func() bool { return a.step("A").State == engine.Gating })
	if out := a.do(a.bin, "log"); !strings.Contains(out, "the work cannot be taken") {
		t.Errorf("%s", out)
	}
}
