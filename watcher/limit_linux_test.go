package watcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// well waits until dir has events and nothing to complain of.
func well(t *testing.T, w *Watcher, dir string) {
	t.Helper()
	poll(t, w, "events and good health", func() bool {
		mode, degraded := w.Health(dir)
		return mode == ModeEvents && degraded == ""
	})
	tested(t, w, dir)
}

// lifted wants a folder that is polled for want of something to have events, without anybody's
// doing, when there is some again.
func lifted(t *testing.T, limit, low string) {
	t.Helper()
	set := func(to string) {
		if err := os.WriteFile(limit, []byte(to), 0o644); err != nil {
			t.Skip("kernel: no limit on inotify in a user namespace: ", err)
		}
	}
	set(low)
	o := quiet()
	o.PollRescan, o.Check, o.Retry = 20*time.Millisecond, 10*time.Millisecond, 30*time.Millisecond
	dir, w := newDir(t), start(t, o)
	add(t, w, dir)
	for i := range 3 {
		poll(t, w, "polling", func() bool {
			mode, degraded := w.Health(dir)
			return mode == ModePolling && degraded != ""
		})
		name := fmt.Sprint("polled", i)
		write(t, filepath.Join(dir, name), "1")
		until(t, w, "the file, polled", func() bool { return has(scan(t, w, dir), name, "1") })
		set("1000")
		well(t, w, dir)
		name = fmt.Sprint("told", i)
		write(t, filepath.Join(dir, name), "1")
		until(t, w, "the file, by event", func() bool { return has(scan(t, w, dir), name, "1") })
		set(low)
		w.lost("the test says so") // what is refused now was had before
	}
}

func TestInstanceLimitIsLifted(t *testing.T) {
	if inNamespace(t, ":", "-Ur") {
		lifted(t, "/proc/sys/user/max_inotify_instances", "0")
	}
}

func TestWatchLimitIsLifted(t *testing.T) {
	if inNamespace(t, ":", "-Ur") {
		lifted(t, "/proc/sys/user/max_inotify_watches", "1")
	}
}

// Events that end, for whatever reason, are asked for again, and nothing is held twice.
func TestEventsEnd(t *testing.T) {
	var opened atomic.Int32
	o := quiet()
	o.Retry, o.PollRescan = 20*time.Millisecond, 20*time.Millisecond
	w := closed(t, newFrom(o, func() (*fsnotify.Watcher, error) {
		if n := opened.Add(1); n == 2 || n == 3 {
			return nil, errors.New("not now")
		}
		return fsnotify.NewWatcher()
	}, newPatrol()))
	dir := newDir(t)
	add(t, w, dir)
	tested(t, w, dir)
	w.arming.Lock()
	err := w.source.Close()
	w.arming.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	poll(t, w, "tried until there are events", func() bool { return opened.Load() == 4 })
	well(t, w, dir)
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "1") })
	if n := opened.Load(); n != 4 {
		t.Errorf("asked %d times", n)
	}
}

// Events that end before the reader has heard of them are replaced: nobody waits for it with what
// it needs in hand.
func TestReopenWaitsForNobody(t *testing.T) {
	w := New(quiet())
	if err := w.Close(); err != nil { // so that nothing is taken
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			w.mu.Lock()
			w.noEvents, w.nextOpen = "the test says so", time.Time{}
			w.mu.Unlock()
			w.reopen()
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the reader")
	}
	if err := w.source.Close(); err != nil {
		t.Error(err)
	}
	if n := len(w.fresh); n != 1 || <-w.fresh != w.source {
		t.Errorf("%d sources wait, and the last is not the one that is open", n)
	}
}

// Folders beyond the bound are polled and say why; when others go, they take their places.
func TestMoreFoldersThanAreWatched(t *testing.T) {
	o := quiet()
	o.PollRescan, o.Check = 20*time.Millisecond, 20*time.Millisecond
	w, root := start(t, o), t.TempDir()
	w.mu.Lock()
	w.watched = MaxWatched - 3
	w.mu.Unlock()
	var dirs []string
	for i := range 6 {
		dir := filepath.Join(root, fmt.Sprint("d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		add(t, w, dir)
		mode, degraded := w.Health(dir)
		if polled := mode == ModePolling && strings.Contains(degraded, "more than 16384 folders"); polled != (i >= 3) {
			t.Errorf("folder %d: %s %q", i, mode, degraded)
		}
	}
	write(t, filepath.Join(dirs[5], "x"), "1")
	until(t, w, "a file in one that is polled", func() bool { return has(scan(t, w, dirs[5]), "x", "1") })
	for _, dir := range dirs[:3] {
		w.Remove(dir)
	}
	for _, dir := range dirs[3:] {
		well(t, w, dir)
	}
	w.mu.Lock()
	if w.watched != MaxWatched {
		t.Errorf("%d places are taken", w.watched)
	}
	w.mu.Unlock()
}

// needsFuse skips a test that cannot mount a file system of bindfs.
func needsFuse(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs: bindfs (apt-get install bindfs)")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Skip("kernel: no FUSE: ", err)
	}
}

// A file system that others change shows no event of it: it is known by its kind, polled, and left
// so when it is gone.
func TestFileSystemOfOthers(t *testing.T) {
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	needsFuse(t)
	o := quiet()
	o.PollRescan, o.Check = 30*time.Millisecond, 30*time.Millisecond
	dir, w := newDir(t), start(t, o)
	under := filepath.Join(filepath.Dir(dir), "under")
	if err := os.Mkdir(under, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	tested(t, w, dir)
	if out, err := exec.Command("bindfs", under, dir).CombinedOutput(); err != nil {
		t.Skipf("kernel: no FUSE mount to be had: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // its server ends with it; the test may have done so
	poll(t, w, "polling", func() bool {
		mode, degraded := w.Health(dir)
		return mode == ModePolling && strings.Contains(degraded, "fuse")
	})
	for i := range 3 {
		name := fmt.Sprint(i)
		write(t, filepath.Join(under, name), "1")
		until(t, w, "a file made underneath", func() bool { return has(scan(t, w, dir), name, "1") })
	}
	if left := cookies(t, under); len(left) != 0 {
		t.Errorf("cookies: %q", left)
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	well(t, w, dir)
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "a file by event", func() bool { return has(scan(t, w, dir), "x", "1") })
}

// A file system that is unmounted, and one like it mounted in its place, may bear the very numbers
// of the old: then the cookie alone finds that nobody listens.
func TestMountedAnew(t *testing.T) {
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	o := quiet()
	o.Check, o.Cookie, o.CookieWait = 30*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond
	dir, w := newDir(t), start(t, o)
	mountAt := func() {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("kernel: no mount of a tmpfs to be had: ", err)
		}
	}
	numbers := func() identity {
		st, err := folderAt(dir)
		if err != nil {
			t.Fatal(err)
		}
		return identityOf(st)
	}
	mountAt()
	add(t, w, dir)
	same := 0
	for i := range 5 {
		tested(t, w, dir)
		before := numbers()
		w.arming.Lock() // the keeper does not see the folder between
		poll(t, w, "nothing of it is open", func() bool { return unix.Unmount(dir, 0) == nil })
		mountAt()
		w.arming.Unlock()
		if numbers() == before {
			same++
		}
		poll(t, w, "the new one heard", func() bool {
			return slices.Contains(w.source.WatchList(), dir) && w.watches(t, dir)
		})
		name := fmt.Sprint(i)
		write(t, filepath.Join(dir, name), "1")
		until(t, w, "a file in it", func() bool { return has(scan(t, w, dir), name, "1") })
	}
	t.Logf("%d of 5 bore the numbers of the one before", same)
	w.Remove(dir)
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
}

// A burst of 50,000 events costs no more memory than the kernel's queue, which is not ours, and one
// buffer.
func TestBurstTakesLittleMemory(t *testing.T) {
	const files = 50_000
	if testing.Short() {
		t.Skip("makes 50,000 files")
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
	dir := filepath.Join(base, "signals")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := live(), uint64(0)
	for i := range files {
		name := filepath.Join(dir, fmt.Sprintf("%05d-done.json", i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i%5000 == 0 {
			most = max(most, live())
		}
	}
	most = max(most, live())
	if most > before+2<<20 {
		t.Errorf("%d files took %d KiB", files, (most-before)>>10)
	}
	names := map[string]bool{}
	until(t, w, "all of them", func() bool {
		for more := true; more; {
			var seen []Seen
			if seen, more, err = w.Scan(dir); err != nil {
				t.Fatal(err)
			}
			for _, s := range seen {
				names[s.Name] = true
			}
		}
		return len(names) == files
	})
	if after := live(); after > before+64<<20 {
		t.Errorf("what is remembered of %d files takes %d KiB", files, (after-before)>>10)
	}
}

// On a busy machine a look may begin only after its folder was given up. The folder is looked at again.
func TestLookThatBeginsLate(t *testing.T) {
	w, dir := start(t, quiet()), newDir(t)
	add(t, w, dir)
	w.mu.Lock()
	f := w.folders[dir]
	f.hung = true
	w.mu.Unlock()
	k, given := walk{w: w, folders: []*folder{f}, found: make([]looked, 1), at: 1}, true
	k.from(0, &given)
	well(t, w, dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.hung || k.found[0].answered {
		t.Errorf("hung: %v, found: %+v", f.hung, k.found[0])
	}
}

// A file system that does not answer, as one whose server is gone, holds up its own folder and no
// other.
func TestFileSystemThatHangs(t *testing.T) {
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	needsFuse(t)
	o := quiet()
	o.PollRescan, o.Check = 50*time.Millisecond, 50*time.Millisecond
	w, dir, other := start(t, o), newDir(t), newDir(t)
	under := newDir(t)
	server := exec.Command("bindfs", "-f", under, dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	signal := func(sig unix.Signal) {
		if err := unix.Kill(server.Process.Pid, sig); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { // before the watcher is closed
		signal(unix.SIGCONT)
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		signal(unix.SIGTERM)
		_ = server.Wait() // it was told to end
	})
	poll(t, w, "the mount", func() bool { return silent(dir) != "" || server.ProcessState != nil })
	add(t, w, dir)
	add(t, w, other)
	tested(t, w, other)
	signal(unix.SIGSTOP)
	poll(t, w, "that it does not answer", func() bool {
		_, degraded := w.Health(dir)
		return strings.Contains(degraded, "does not answer")
	})
	for i := range 3 {
		name := fmt.Sprint(i)
		write(t, filepath.Join(other, name), "1")
		until(t, w, "a file elsewhere", func() bool { return has(scan(t, w, other), name, "1") })
		third := newDir(t)
		add(t, w, third)
		well(t, w, third)
		if err := os.RemoveAll(other); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		well(t, w, other)
		w.Remove(third)
	}
	signal(unix.SIGCONT)
	poll(t, w, "that it answers", func() bool {
		_, degraded := w.Health(dir)
		return strings.Contains(degraded, "fuse")
	})
	write(t, filepath.Join(under, "x"), "1")
	until(t, w, "its file", func() bool { return has(scan(t, w, dir), "x", "1") })
}
