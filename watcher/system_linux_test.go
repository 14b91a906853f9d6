package watcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/atomicfile"
	"sluice/tools/conform"
)

// Links, pipes and sockets are told of and not read, and hold up nobody.
func TestSpecialFiles(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "links, pipes and sockets are told of, not read")
	dir, w := newDir(t), start(t, quiet())
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	add(t, w, dir)
	tested(t, w, dir)
	if err := errors.Join(os.Symlink(secret, filepath.Join(dir, "a-link")), unix.Mkfifo(filepath.Join(dir, "b-pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "c-file"), "1")
	until(t, w, "the file after them", func() bool { return has(scan(t, w, dir), "c-file", "1") })
	seen := scan(t, w, dir)
	if len(seen) != 3 {
		t.Fatalf("%+v", seen)
	}
	for _, s := range seen[:2] {
		if !errors.Is(s.Err, atomicfile.ErrNotRegular) || s.Data != nil {
			t.Errorf("%s: %q %v", s.Name, s.Data, s.Err)
		}
	}
}

// A write through a memory map makes no event, and on some file systems leaves no other time.
func TestMemoryMap(t *testing.T) {
	o := quiet()
	o.Rescan, o.Check = 30*time.Millisecond, 30*time.Millisecond
	dir, w := newDir(t), start(t, o)
	path := filepath.Join(dir, "x")
	write(t, path, "{     ")
	add(t, w, dir)
	tested(t, w, dir)
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "{     ") })
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	copy(m, "{\"a\":1")
	until(t, w, "the new text", func() bool { return has(scan(t, w, dir), "x", "{\"a\":1") })
	if err := errors.Join(unix.Munmap(m), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Rights that are gone are no empty folder.
func TestRightsLost(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	// Those above are nobody's business here.
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "x"), "1")
	add(t, w, dir)
	tested(t, w, dir)
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	unreadable := func() bool {
		_, _, err := w.Scan(dir)
		_, degraded := w.Health(dir)
		return errors.Is(err, ErrUnreadable) && strings.Contains(degraded, "permission denied")
	}
	asNobody(t, func() { until(t, w, "that it cannot be read", unreadable) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "x"), 0o644); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		until(t, w, "the file again", func() bool {
			seen, _, err := w.Scan(dir)
			return err == nil && has(seen, "x", "1")
		})
	})
	if _, degraded := w.Health(dir); degraded != "" {
		t.Errorf("health: %q", degraded)
	}
}

// asNobody has the file system see this goroutine as one without rights: root reads everything.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := unix.SetfsuidRetUid(0); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// The kernel drops what does not fit in its queue: all files are found, and the watcher lives on. A
// folder that was made again among what was dropped is watched again.
func TestOverflow(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "what the kernel drops is found all the same")
	const files = 20_000
	if testing.Short() {
		t.Skip("makes 20,000 files")
	}
	base, err := os.MkdirTemp("/dev/shm", "watcher-")
	if err != nil {
		base = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	dir, other := filepath.Join(base, "signals"), filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	w := start(t, quiet())
	add(t, w, dir)
	add(t, w, other)
	tested(t, w, dir)
	tested(t, w, other)
	// The reader stands still, as in a process that was stopped.
	w.mu.Lock()
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("f%05d", i)))
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			w.mu.Unlock()
			t.Fatal(err)
		}
	}
	err = errors.Join(os.RemoveAll(other), os.Mkdir(other, 0o700))
	w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	until(t, w, "all files", func() bool {
		for more := true; more; {
			var got []Seen
			if got, more, err = w.Scan(dir); err != nil {
				t.Fatal(err)
			}
			for _, s := range got {
				seen[s.Name] = true
			}
		}
		return len(seen) == files
	})
	poll(t, w, "the other folder watched", func() bool { return w.watches(t, other) })
	tested(t, w, dir)
	tested(t, w, other)
	write(t, filepath.Join(other, "after"), "1")
	until(t, w, "a file after it", func() bool { return has(scan(t, w, other), "after", "1") })
}

// inNamespace runs the test once more in a namespace of its own, made by unshare with args, where
// it may mount and set limits without touching the machine. It tells whether this is that run.
func inNamespace(t *testing.T, script string, args ...string) bool {
	t.Helper()
	const mark = "SLUICE_TEST_NAMESPACE"
	if os.Getenv(mark) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(args, "sh", "-c", script+`; exec "$0" "$@"`, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	if err := exec.Command("unshare", append(args, "true")...).Run(); err != nil {
		t.Skipf("kernel: no namespace to be had: %v", err)
	}
	cmd := exec.Command("unshare", argv...)
	cmd.Env = append(os.Environ(), mark+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	return false
}

// A folder that is mounted over, and whose mount is taken away, says nothing at all.
func TestMountedOver(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "a folder mounted over says nothing and is found")
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	o := quiet()
	o.Rescan, o.Check = 50*time.Millisecond, 50*time.Millisecond
	dir, w := newDir(t), start(t, o)
	add(t, w, dir)
	for i := range 2 {
		tested(t, w, dir)
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("kernel: ", err)
		}
		write(t, filepath.Join(dir, "above"), "1")
		until(t, w, "a file in the mount", func() bool { return has(scan(t, w, dir), "above", "1") })
		poll(t, w, "the mount watched", func() bool { return w.watches(t, dir) })
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("below", i)
		write(t, filepath.Join(dir, name), "1")
		until(t, w, "a file below it", func() bool { return has(scan(t, w, dir), name, "1") })
		poll(t, w, "the folder watched", func() bool { return w.watches(t, dir) })
	}
}

// watches reports whether what is watched is what is there.
func (w *Watcher) watches(t *testing.T, dir string) bool {
	t.Helper()
	id, err := folderAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.folders[dir].armed == identityOf(id)
}

func TestInstanceLimit(t *testing.T) {
	if !inNamespace(t, "echo 0 >/proc/sys/user/max_inotify_instances", "-Ur") {
		return
	}
	if w := New(Options{}); w.source != nil {
		t.Skip("kernel: the limit on inotify instances does not hold here")
	}
	limited(t, "no events from the system")
}

func TestWatchLimit(t *testing.T) {
	if !inNamespace(t, "echo 1 >/proc/sys/user/max_inotify_watches", "-Ur") {
		return
	}
	limited(t, "cannot be watched")
}

// limited wants polling, the reason, and the files all the same.
func limited(t *testing.T, reason string) {
	t.Helper()
	dir, w := newDir(t), start(t, Options{PollRescan: 20 * time.Millisecond})
	add(t, w, dir)
	if mode, degraded := w.Health(dir); mode != ModePolling || !strings.Contains(degraded, reason) {
		t.Errorf("health: %s %q", mode, degraded)
	}
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "1") })
}

func TestSilentFileSystems(t *testing.T) {
	if why := silent(t.TempDir()); why != "" {
		t.Errorf("a disk: %q", why)
	}
	if why := silent("/nonexistent"); why != "" {
		t.Errorf("nothing: %q", why)
	}
	for number, name := range map[uint32]string{0x6969: "nfs", 0x517b: "cifs", 0xff534d42: "cifs", 0xfe534d42: "cifs", 0x65735546: "fuse",
		0x01021997: "9p", 0x00c36400: "ceph", 0x5346414f: "afs", 0x6b414653: "afs"} {
		if why := silentType(number); !strings.Contains(why, " type "+name+" ") {
			t.Errorf("%s, %#x: %q", name, number, why)
		}
	}
	for _, number := range []uint32{0xef53, 0x9123683e, 0x01021994} { // ext4, btrfs, tmpfs
		if why := silentType(number); why != "" {
			t.Errorf("%#x: %q", number, why)
		}
	}
}
