//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/natstest"
)

// Each try of a task writes a line; that of T2 waits until the test says so.
const clusterListSpec = `workflow: {id: long, workspace: run, on_done: {land: squash}}
steps:
  - id: A
    run: [sh, -c, 'echo "$SLUICE_TASK" >>"@RAN@"; echo "$SLUICE_TASK" >>made.txt; [ "$SLUICE_TASK" != T2 ] || while test ! -e "@RAN@.go"; do sleep 0.05; done']
    for_each: {tasks: to-do.json}
    outputs: [made.txt]
    gate: GA
gates:
  - {id: GA, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

const threeTasks = `{"tasks": [{"id": "T1", "title": "one"}, {"id": "T2", "title": "two"}, {"id": "T3", "title": "three"}]}
`

// A machine dies while a task of a list is at work. The task is done again, those that are done are not, and what lands
// has each task's result.
func TestClusterList(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	ran := filepath.Join(t.TempDir(), "ran")
	a, b, id := machinesWith(t, servers, "1", strings.ReplaceAll(clusterListSpec, "@RAN@", ran))
	a.put("repo/to-do.json", threeTasks)
	a.commit()
	b.do("git", "pull", "-q")
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.bootIn(servers, "--standby")
	a.do(a.bin, "start", "long")
	eventually(t, "T2 is at work", func() bool { return ranLines(t, ran) == "T1\nT2\n" })
	eventually(t, "the standby knows it", func() bool { return strings.Contains(b.do(b.bin, "status"), "1 of 3 tasks done") })
	a.die()
	within(t, serverElection, "b leads", b.leads)
	eventually(t, "T2 is at work there", func() bool { return ranLines(t, ran) == "T1\nT2\nT2\n" })
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the list waits for a person", func() bool { return b.step("A").State == engine.Gating })
	b.do(b.bin, "pass", "GA")
	eventually(t, "the run ends", func() bool { return strings.Contains(b.do(b.bin, "ls"), "long-1  completed") })
	if got := ranLines(t, ran); got != "T1\nT2\nT2\nT3\n" {
		t.Errorf("these tasks ran:\n%s", got)
	}
	if got := b.do("git", "show", "main:made.txt"); got != "T1\nT2\nT3\n" {
		t.Errorf("%q has landed", got)
	}
	if got := b.do("git", "show", "main:to-do.json"); strings.Count(got, `"status": "done"`) != 3 {
		t.Errorf("the task file that has landed:\n%s", got)
	}
	b.sameAsStream(servers, id)
	if t.Failed() {
		t.Log(b.do(b.bin, "log", "--all"))
	}
}
