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
	eventually(t, "the worker is there", a.hasWorker)
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

// foundAgent ends once the test says so.
const foundAgent = `set -eu
echo "$SLUICE_ATTEMPT" >>"@RAN@"
while test ! -e "@RAN@.go"; do sleep 0.05; done
wc -l <"@RAN@" >made.txt
mkdir -p "$(dirname "$SLUICE_SIGNAL")"
printf '{"step":"A","status":"done","summary":"made","token":"%s"}' "$SLUICE_TOKEN" >"$SLUICE_SIGNAL.tmp"
mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"
`

// A run has begun from a commit that the machine which takes over lacks. What a worker does for it there
// would bring that commit along: the step is done again, from where the run begins here.
func TestClusterTakeoverFromAnotherCommit(t *testing.T) {
	conform.Rule(t, "13-workers late", "work that began from a commit of the machine before is done again")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 1)
	a.put("repo/.workflow/specs/lost.yaml", lostSpec)
	a.commit()
	all[0].put("agent.sh", strings.ReplaceAll(foundAgent, "@RAN@", ran))
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	b := standby(t, a, servers, id, nil)
	a.put("repo/of-a.txt", "only a has it")
	a.commit()
	a.do(a.bin, "start", "lost")
	eventually(t, "A runs", func() bool { return ranLines(t, ran) == "1\n" })
	eventually(t, "the standby has the run", func() bool { return b.step("A").State == engine.Running })
	a.kill()
	eventually(t, "b leads", b.leads)
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run ends", b.ended)
	b.madeBySecond()
	if files := b.do("git", "ls-tree", "--name-only", "main"); strings.Contains(files, "of-a.txt") {
		t.Errorf("a's own commit came along: %s", files)
	}
}
