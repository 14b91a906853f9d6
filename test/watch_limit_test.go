//go:build linux

package test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/tools/conform"
)

const (
	limitInstances = "/proc/sys/user/max_inotify_instances"
	limitWatches   = "/proc/sys/user/max_inotify_watches"
)

// limits sets a limit of the namespace that the test runs in.
func limits(t *testing.T, file, to string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(to), 0o644); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			t.Skipf("kernel: no limit on inotify in a user namespace: %v", err)
		}
		t.Fatal(err)
	}
}

// polled has a daemon that gets no events take a signal in all the same, and be as before when the limit is lifted: no
// restart is needed.
func polled(t *testing.T, limit, low, why string) {
	limits(t, limit, low)
	w := newInbox(t, watchSettings)
	w.served()
	w.degraded("polling", why)
	run := w.offered()
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("polled", run)
	limits(t, limit, "1000")
	w.well()
	run = w.offered()
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("with events", run)
}

// No inotify instance is available: the daemon starts, polls and says so, and has events when there
// are some again.
func TestWatchNoInstance(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "without an inotify instance the daemon polls and says so, until there is one")
	t.Parallel()
	if inNamespace(t, ":", "-Ur") {
		polled(t, limitInstances, "0", "no events from the system")
	}
}

// Only one watch is available: the same.
func TestWatchNoWatches(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "without inotify watches the daemon polls and says so, until there are some")
	t.Parallel()
	if inNamespace(t, ":", "-Ur") {
		polled(t, limitWatches, "1", "cannot be watched")
	}
}

// loopback mounts a file system at a folder that shows what is at another, where changes can be made underneath it: it
// sends no events of them, as one that another machine serves. The mount goes with its namespace.
func loopback(t *testing.T, from, at string) {
	t.Helper()
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs: bindfs (apt-get install bindfs)")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("kernel: no FUSE: %v", err)
	} else {
		f.Close()
	}
	out, err := exec.Command("bindfs", from, at).CombinedOutput()
	if err != nil {
		t.Skipf("kernel: no FUSE mount to be had: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", at).Run() }) // the test may have done so
}

// The inbox is on a file system without events for others' changes: the daemon says so and polls
// it, and stops both when the inbox is elsewhere again.
func TestWatchSilentFileSystem(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox on a FUSE file system, changed underneath, is polled")
	t.Parallel()
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	w := newInbox(t, strings.Replace(watchSettings, "300ms", "1h", 1)) // the watcher's own polling has to do
	under := filepath.Join(w.work, "under")
	w.must(os.Mkdir(under, 0o755), os.Mkdir(w.inbox(), 0o755))
	loopback(t, under, w.inbox())
	w.served()
	w.degraded("signals", "polling", "fuse")
	run := w.offered()
	w.put("under/.dropped", `{"status": "done"}`)
	w.must(os.Rename(filepath.Join(under, ".dropped"), filepath.Join(under, sentinel)))
	w.passes("underneath", run)
	run = w.offered()
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("through the mount", run)
	if out, err := exec.Command("umount", "-l", w.inbox()).CombinedOutput(); err != nil {
		t.Fatalf("umount: %v: %s", err, out)
	}
	w.well()
	run = w.offered()
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("by event", run)
}
