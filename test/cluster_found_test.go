//go:build linux

package test

import (
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// The machine that decides is killed while a worker does a step. The one that takes over goes on with
// it: nothing is launched again, and the step's commits, signal and answer count there.
func TestClusterTakeoverKeepsWork(t *testing.T) {
	conform.Rule(t, "13-workers late", "the leader dies: what a worker does goes on, and counts on the machine that takes over")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 1)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", func() bool { return strings.Contains(a.do(a.bin, "workers"), "linux") })
	b := standby(t, a, servers, id, nil)
	a.do(a.bin, "start", "far")
	eventually(t, "B runs", func() bool { return strings.HasSuffix(ranLines(t, ran), "B a\n") })
	eventually(t, "the standby has the run", func() bool { return b.step("B").State == engine.Running })
	a.kill()
	eventually(t, "b leads", b.leads)
	eventually(t, "b has found it", func() bool { return strings.Contains(b.do(b.bin, "status"), "running") })
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run ends", b.ended)
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran:\n%s\n%s", got, b.do(b.bin, "log"))
	}
	for _, file := range []string{"one.txt", "two.txt"} {
		b.do("git", "cat-file", "-e", "sluice/far-1:"+file)
	}
	if s := b.step("B"); s.Attempt != 1 {
		t.Errorf("B has %d attempts", s.Attempt)
	}
	if out := b.do(b.bin, "log"); strings.Count(out, "made by a") < 2 {
		t.Errorf("the agent's own words are not in the log:\n%s", out)
	}
}
