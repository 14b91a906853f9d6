package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupOf returns the cgroup that a launch's shim has prepared for its next launch.
func cgroupOf(t *testing.T, p *Proc) string {
	t.Helper()
	var found []string
	eventually(t, "the next launch's cgroup", func() bool {
		found, _ = filepath.Glob(filepath.Join(filepath.Dir(p.id.Cgroup), cgroupName(p.id.Mark)+"*"))
		return len(found) == 1 && found[0] != p.id.Cgroup
	})
	return found[0]
}

// TestCgroupsOfKilledShimsGo: the cgroup that a killed shim held ready for a launch that never came
// is removed. Those of live shims stay, however old.
func TestCgroupsOfKilledShimsGo(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 3)
	procs := make([]*Proc, 3)
	for i := range procs {
		procs[i] = ensure(t, r, nth(base, i, "until test -e go; do sleep 0.01; done"))
	}
	if procs[0].id.Cgroup == "" {
		t.Skip("kernel: no cgroup to be had here")
	}
	os.WriteFile(filepath.Join(base.Cwd, "go"), nil, 0o600)
	for _, p := range procs {
		wait(t, p)
	}
	killed, leaves, stays := procs[0], procs[1], procs[2]
	stray, held := cgroupOf(t, killed), cgroupOf(t, stays)
	cgroupOf(t, leaves)
	if err := syscall.Kill(killed.id.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed one lets go", func() bool {
		dir, err := os.Open(stray)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	})
	young := filepath.Join(filepath.Dir(stray), cgroupPrefix+"test-of-now-1") // not yet locked by its creator
	if err := os.Mkdir(young, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(young)
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{stray, held} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(leaves.id.Pid, syscall.SIGTERM); err != nil { // a shim that ends cleans up
		t.Fatal(err)
	}
	eventually(t, "the killed one's cgroup goes", func() bool {
		_, err := os.Stat(stray)
		return errors.Is(err, fs.ErrNotExist)
	})
	eventually(t, "the shim goes", func() bool { return !runs(leaves.id.Pid) })
	for _, dir := range []string{held, young} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
