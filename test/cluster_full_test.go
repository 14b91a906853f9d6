//go:build linux

package test

import (
	"math/rand"
	"os"
	"strings"
	"testing"

	"sluice/tools/natstest"
)

// The servers have no room for the commits that a worker lacks: the status says so, nothing is lost, and
// the run goes on once there is room.
func TestClusterNoRoomForWork(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1, natstest.Store(2<<20))
	a, all, id, ran := workersOf(t, servers, 1)
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 4<<20)
	_, _ = rand.New(rand.NewSource(1)).Read(large) // it cannot be compressed; the error is always nil
	a.put("repo/large.bin", string(large))
	a.do("git", "add", "-A")
	a.do("git", "commit", "-q", "-m", "large")
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	a.do(a.bin, "start", "far")
	eventually(t, "the status says what the run waits for", func() bool {
		_, out := a.code("status")
		return strings.Contains(out, "stalled") && (strings.Contains(out, "resource") || strings.Contains(out, "maximum"))
	})
	if got := ranLines(t, ran); got != "" {
		t.Errorf("these steps ran without their commits:\n%s", got)
	}
	goesOnWithRoom(t, servers, a, ran)
}

// The servers have no room for what a worker has made: status and workers say so, the step goes on as one
// launch, and its result comes once there is room.
func TestClusterNoRoomForResult(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1, natstest.Store(2<<20))
	a, all, id, ran := workersOf(t, servers, 1)
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	large := strings.Replace(workerAgent, "echo two >", "head -c 4194304 /dev/urandom >", 1)
	all[0].put("agent.sh", strings.NewReplacer("@RAN@", ran, "@NAME@", "a").Replace(large))
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	a.do(a.bin, "start", "far")
	for _, command := range []string{"status", "workers"} {
		eventually(t, command+" says what the result waits for", func() bool {
			_, out := a.code(command)
			out = strings.Join(strings.Fields(out), " ")
			_, why, says := strings.Cut(out, "to read an order")
			return says && strings.Contains(why, "the object store: ") && (strings.Contains(why, "resource") || strings.Contains(why, "maximum"))
		})
	}
	goesOnWithRoom(t, servers, a, ran)
	eventually(t, "nothing waits any more", func() bool {
		return !strings.Contains(a.do(a.bin, "workers")+a.do(a.bin, "status"), "to read an order")
	})
}

// goesOnWithRoom starts the server again with more room, and has the run end with each step done once.
func goesOnWithRoom(t *testing.T, servers *natstest.Servers, a *sandbox, ran string) {
	t.Helper()
	servers.Kill(0)
	natstest.Store(100 << 20)(servers)
	servers.Run(0)
	eventually(t, "the run ends", a.ended)
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran:\n%s", got)
	}
}
