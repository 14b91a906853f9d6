package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// backMost is how long after a crash the daemon may be away, by the manager's own clock. The unit waits one second; the rest
// is for a loaded machine.
const backMost = 10_000 // ms

// A real systemd has the service: from install to a reboot, as a user's own and as the machine's. What is shown stands in
// the scripts, a line "ok NAME" each.
func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	bin := filepath.Join(t.TempDir(), "sluice")
	build := exec.Command("go", "build", "-o", bin, "sluice/cmd/sluice")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	m.copy(bin, "out/sluice")
	first := m.boot("first")
	if ms, err := strconv.Atoi(first["back-ms"]); err != nil || ms <= 0 || ms > backMost {
		t.Errorf("after kill -9 the daemon was back in %q ms", first["back-ms"])
	}
}
