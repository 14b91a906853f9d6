package watcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"sluice/tools/conform"
	"sluice/tools/twoclocks"
)

// A folder that is removed and made again, or renamed away, or whose parent is, is watched again at
// once, though its watch went with the old one: no look by time is waited for here.
func TestFolderComesBack(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "a folder made again is watched again")
	remake := func(path string) error { return os.MkdirAll(path, 0o700) }
	remove := func(path string) (err error) {
		for err = os.RemoveAll(path); errors.Is(err, syscall.ENOTEMPTY); err = os.RemoveAll(path) { // the watcher puts a file of its own there
		}
		return err
	}
	cases := map[string]func(parent, dir string) error{
		"removed": func(_, dir string) error { return errors.Join(remove(dir), remake(dir)) },
		"renamed": func(_, dir string) error { return errors.Join(os.Rename(dir, dir+"2"), remake(dir)) },
		"replaced": func(_, dir string) error {
			return errors.Join(remake(dir+"2"), os.Rename(dir, dir+"3"), os.Rename(dir+"2", dir))
		},
		"emptied over": func(_, dir string) error {
			return errors.Join(remake(dir+"2"), remove(dir), os.Rename(dir+"2", dir))
		},
	}
	for name, away := range cases {
		t.Run(name, func(t *testing.T) {
			dir, w := newDir(t), start(t, quiet())
			add(t, w, dir)
			tested(t, w, dir)
			for i := range 3 {
				if err := away(filepath.Dir(dir), dir); err != nil {
					t.Fatal(err)
				}
				tested(t, w, dir)
				text := fmt.Sprint(i)
				write(t, filepath.Join(dir, "x"), text)
				until(t, w, "a file in the new folder", func() bool { return has(scan(t, w, dir), "x", text) })
				poll(t, w, "healthy again", func() bool { // the file may be found before the end of the old folder is
					mode, degraded := w.Health(dir)
					return mode == ModeEvents && degraded == ""
				})
				if err := os.RemoveAll(dir + "3"); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(dir + "2"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// With the folder above gone too there is nothing to tell of it: the look by time finds it.
func TestParentComesBack(t *testing.T) {
	o := quiet()
	o.Rescan, o.Check = 50*time.Millisecond, 50*time.Millisecond
	w := start(t, o)
	root := t.TempDir()
	dir := filepath.Join(root, ".workflow", "signals")
	for i := range 3 {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			add(t, w, dir)
		}
		tested(t, w, dir)
		write(t, filepath.Join(dir, "x"), "1")
		until(t, w, "the file", func() bool {
			seen, _, err := w.Scan(dir)
			return err == nil && has(seen, "x", "1")
		})
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		until(t, w, "that it is missing", func() bool {
			_, _, err := w.Scan(dir)
			_, degraded := w.Health(dir)
			return errors.Is(err, ErrMissing) && strings.Contains(degraded, "missing")
		})
	}
}

func TestFolderThatComesLater(t *testing.T) {
	w := start(t, quiet())
	dir := filepath.Join(t.TempDir(), "signals")
	add(t, w, dir)
	if _, _, err := w.Scan(dir); !errors.Is(err, ErrMissing) {
		t.Fatal(err)
	}
	if _, degraded := w.Health(dir); !strings.Contains(degraded, "missing") {
		t.Errorf("health: %q", degraded)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "the file", func() bool {
		seen, _, err := w.Scan(dir)
		return err == nil && has(seen, "x", "1")
	})
	tested(t, w, dir)
	if mode, degraded := w.Health(dir); mode != ModeEvents || degraded != "" {
		t.Errorf("health: %s %q", mode, degraded)
	}
}

// A watch that is lost without a word (as by a mount over it) is found by its cookie and made
// again.
func TestCookieFindsLostWatch(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "a lost watch is found and made again")
	o := quiet()
	o.CookieWait = 100 * time.Millisecond
	dir, w := newDir(t), start(t, o)
	add(t, w, dir)
	tested(t, w, dir)
	w.arming.Lock()
	err := w.source.Remove(dir)
	w.arming.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	// One cookie only: no second one comes within the hour.
	w.doubt()
	poll(t, w, "the watch made again", func() bool { return slices.Contains(w.source.WatchList(), dir) })
	poll(t, w, "good health", func() bool {
		mode, degraded := w.Health(dir)
		return mode == ModeEvents && degraded == ""
	})
	tested(t, w, dir)
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "a file", func() bool { return has(scan(t, w, dir), "x", "1") })
}

// A folder made anew may bear the number of the old one: that it went or came is enough to watch it
// again.
func TestNumberOfFolderProvesNothing(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	for _, ev := range []fsnotify.Event{
		{Name: dir, Op: fsnotify.Remove}, {Name: dir, Op: fsnotify.Create}, {Name: dir, Op: fsnotify.Rename},
		{Name: filepath.Dir(dir), Op: fsnotify.Remove},
	} {
		w.arming.Lock() // the keeper stands still
		w.take(ev)
		w.mu.Lock()
		armed := w.folders[dir].armed
		w.mu.Unlock()
		w.arming.Unlock()
		if armed != (identity{}) {
			t.Errorf("%s: still taken for watched", ev)
		}
		tested(t, w, dir)
	}
}

func TestRemoveTakesItsCookie(t *testing.T) {
	o := quiet()
	o.CookieWait, o.Check = time.Hour, 10*time.Millisecond
	dir, w := newDir(t), start(t, o)
	blind(t, w, dir)
	add(t, w, dir)
	if len(cookies(t, dir)) != 0 {
		t.Error("a watch is tested that may be of no use in a moment")
	}
	poll(t, w, "a cookie", func() bool { return len(cookies(t, dir)) == 1 })
	w.Remove(dir)
	if left := cookies(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// blind has fsnotify know dir by another name, as two mounts of one folder would: its events come,
// but under that name. It stands for every file system that sends none.
func blind(t *testing.T, w *Watcher, dir string) (undo func()) {
	t.Helper()
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(dir, alias); err != nil {
		t.Fatal(err)
	}
	if err := w.source.Add(alias); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := w.source.Remove(alias); err != nil {
			t.Fatal(err)
		}
	}
}

// Without events a folder is polled and says so; when they come again, it is watched again.
func TestNoEventsMeansPolling(t *testing.T) {
	o := Options{Rescan: 40 * time.Millisecond, PollRescan: 20 * time.Millisecond, Cookie: 100 * time.Millisecond, CookieWait: 30 * time.Millisecond}
	dir, w := newDir(t), start(t, o)
	undo := blind(t, w, dir)
	add(t, w, dir)
	poll(t, w, "polling", func() bool {
		mode, degraded := w.Health(dir)
		return mode == ModePolling && strings.Contains(degraded, "no events")
	})
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "1") })
	undo()
	poll(t, w, "events again", func() bool {
		mode, degraded := w.Health(dir)
		return mode == ModeEvents && degraded == ""
	})
	poll(t, w, "no cookie left over", func() bool { return len(cookies(t, dir)) <= 1 })
}

// A folder that is polled since its file system sent no events may become read-only as well.
func TestHealthNamesEachFault(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	w.arming.Lock() // the keeper stands still
	defer w.arming.Unlock()
	unreadable := errors.New("permission denied")
	for _, c := range []struct {
		reason, untested string
		scan             error
		want             string
	}{
		{"", "", nil, ""},
		{"no events", "", nil, "no events"},
		{"", "could not be tested", nil, "could not be tested"},
		{"no events", "could not be tested", nil, "no events; could not be tested"},
		{"no events", "could not be tested", unreadable, "permission denied"},
	} {
		w.mu.Lock()
		f := w.folders[dir]
		f.reason, f.untested, f.scanErr = c.reason, c.untested, c.scan
		w.mu.Unlock()
		if _, degraded := w.Health(dir); degraded != c.want {
			t.Errorf("%+v: %q", c, degraded)
		}
	}
}

func cookies(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, cookiePrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// No inotify to be had: it works all the same, and says why it is slow.
func TestNoInotify(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "it works without inotify")
	o := Options{Rescan: time.Hour, Settle: time.Hour, PollRescan: 20 * time.Millisecond}
	refused := func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }
	w := closed(t, newFrom(o, refused, newPatrol()))
	dir := newDir(t)
	add(t, w, dir)
	write(t, filepath.Join(dir, "x"), "1")
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "x", "1") })
	if mode, degraded := w.Health(dir); mode != ModePolling || !strings.Contains(degraded, "too many open files") {
		t.Errorf("health: %s %q", mode, degraded)
	}
	if len(cookies(t, dir)) != 0 {
		t.Error("a cookie where there is nothing to test")
	}
	write(t, filepath.Join(dir, "y"), "2")
	until(t, w, "the next file", func() bool { return has(scan(t, w, dir), "y", "2") })
}

// Hints wait for who takes them, one of a folder, however much happens.
func TestHintsAreCoalesced(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	for range 100 {
		w.hint(dir)
		w.hint("other")
	}
	w.hint("last")
	var got []string
	for len(got) == 0 || got[len(got)-1] != "last" {
		select {
		case name := <-w.Hints():
			got = append(got, name)
		case <-time.After(patience):
			t.Fatalf("no more hints after %q", got)
		}
	}
	if !slices.Equal(got, []string{dir, "other", "last"}) {
		t.Errorf("%d hints", len(got))
	}
}

func TestAddTwiceAndRemove(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	other := filepath.Join(filepath.Dir(dir), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	add(t, w, dir)
	add(t, w, other)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(dir), link); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(filepath.Join(link, "signals")); err == nil {
		t.Error("one folder under two names")
	}
	w.Remove(dir)
	w.Remove(dir)
	list := w.source.WatchList()
	if slices.Contains(list, dir) || !slices.Contains(list, filepath.Dir(dir)) || !slices.Contains(list, other) {
		t.Errorf("watched: %q", list)
	}
	if left := cookies(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	w.Remove(other)
	if list := w.source.WatchList(); len(list) != 0 {
		t.Errorf("watched: %q", list)
	}
	if _, _, err := w.Scan(dir); !errors.Is(err, ErrNotAdded) {
		t.Error(err)
	}
	add(t, w, dir)
	tested(t, w, dir)
}

func TestClose(t *testing.T) {
	w, dir := New(quiet()), newDir(t)
	add(t, w, dir)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if left := cookies(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	if err := w.Add(newDir(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestFolderBelowIsAddedItself(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	run := filepath.Join(dir, "run-1")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, w, dir)
	add(t, w, run)
	tested(t, w, dir)
	tested(t, w, run)
	write(t, filepath.Join(run, "x"), "1")
	until(t, w, "the file below", func() bool { return has(scan(t, w, run), "x", "1") })
	if seen := scan(t, w, dir); len(seen) != 0 {
		t.Errorf("a folder is told of: %+v", seen)
	}
	if err := os.RemoveAll(run); err != nil {
		t.Fatal(err)
	}
	until(t, w, "that it is gone", func() bool {
		_, _, err := w.Scan(run)
		return errors.Is(err, ErrMissing)
	})
	write(t, filepath.Join(dir, "y"), "1")
	until(t, w, "the file above", func() bool { return has(scan(t, w, dir), "y", "1") })
}

// The moments to look again are on the steady clock: a wall clock that is set back holds up no
// look.
func TestBoundaryIsSteady(t *testing.T) {
	now := time.Now()
	at := boundary(now, 5*time.Second)
	if !strings.Contains(at.String(), " m=") {
		t.Errorf("%s is a wall clock's time alone", at)
	}
	if d := at.Sub(now); d <= 0 || d > 5*time.Second || at.UnixNano()%int64(5*time.Second) != 0 {
		t.Errorf("%s after %s is %s", d, now, at)
	}
}

// What no event reported is found by the next check, in a folder that was empty and in one that was
// not. A folder that is still empty is not hinted at.
func TestMissedEventIsFound(t *testing.T) {
	t.Run("by the patrol", func(t *testing.T) { missedEventIsFound(t, newPatrol()) })
	t.Run("by the keeper", func(t *testing.T) { missedEventIsFound(t, nil) }) // macOS, old kernels
}

func missedEventIsFound(t *testing.T, p *patrol) {
	o := quiet()
	o.Check, o.CookieWait = 50*time.Millisecond, time.Hour
	dir, w := newDir(t), closed(t, newFrom(o, fsnotify.NewWatcher, p))
	defer blind(t, w, dir)()
	add(t, w, dir)
	poll(t, w, "the first cookie", func() bool { return len(cookies(t, dir)) == 1 })
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil { // at rest, as far as a scan knows
		t.Fatal(err)
	}
	still := func() bool {
		select {
		case <-w.Hints():
			scan(t, w, dir)
			return false
		case <-time.After(4 * o.Check):
			return true
		}
	}
	scan(t, w, dir)
	for end := time.Now().Add(patience); !still(); {
		if time.Now().After(end) {
			t.Fatal("a folder that is still empty is hinted at again and again")
		}
	}
	for _, name := range []string{"x", "y"} {
		write(t, filepath.Join(dir, name), "1")
		until(t, w, name, func() bool { return has(scan(t, w, dir), name, "1") })
	}
}

// When the clock on the wall jumps, as after a sleep of the machine, everything is hinted at: whoever
// waits for a moment on that clock must look again.
func TestClockJumps(t *testing.T) {
	o := quiet()
	o.Check = 20 * time.Millisecond
	began := time.Now()
	var slept atomic.Int64
	o.Now = func() time.Time {
		steady := time.Since(began)
		return twoclocks.Time(began.Add(steady+time.Duration(slept.Load())), steady)
	}
	dir, w := newDir(t), start(t, o)
	add(t, w, dir)
	tested(t, w, dir)
	for hinted := true; hinted; {
		select {
		case <-w.Hints():
		case <-time.After(5 * o.Check):
			hinted = false
		}
	}
	slept.Store(int64(time.Hour))
	until(t, w, "a hint", func() bool { return true })
}
