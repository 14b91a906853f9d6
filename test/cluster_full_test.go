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
	servers.Kill(0)
	natstest.Store(100 << 20)(servers)
	servers.Run(0)
	eventually(t, "the run ends", a.ended)
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran:\n%s", got)
	}
}
