package watcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds every wait of these tests; none waits for it unless it fails.
const patience = 20 * time.Second

// quiet has nothing come by time, so that what comes is by event.
func quiet() Options {
	return Options{Rescan: time.Hour, PollRescan: time.Hour, Check: time.Hour, Settle: time.Hour, Cookie: time.Hour}
}

func start(t *testing.T, o Options) *Watcher {
	t.Helper()
	return closed(t, New(o))
}

// closed has the Watcher closed at the end of the test.
func closed(t *testing.T, w *Watcher) *Watcher {
	t.Helper()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func add(t *testing.T, w *Watcher, dir string) {
	t.Helper()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
}

func newDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "signals")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until calls cond after every hint, and never without one, until it holds: what it waits for must
// be hinted at.
func until(t *testing.T, w *Watcher, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-w.Hints():
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
		if cond() {
			return
		}
	}
}

// poll calls cond until it holds, whatever is hinted; hints are taken so that none waits.
func poll(t *testing.T, w *Watcher, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		select {
		case <-w.Hints():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// tested waits until the first cookie of dir has come: its watch works then.
func tested(t *testing.T, w *Watcher, dir string) {
	t.Helper()
	poll(t, w, "the first cookie", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		f := w.folders[dir]
		return f.cookie == "" && f.untested == "" && f.armed != identity{} && len(w.queue) == 0
	})
}

func scan(t *testing.T, w *Watcher, dir string) []Seen {
	t.Helper()
	seen, _, err := w.Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func has(seen []Seen, name, text string) bool {
	for _, s := range seen {
		if s.Name == name && s.Err == nil && string(s.Data) == text {
			return true
		}
	}
	return false
}

func TestEventMakesHint(t *testing.T) {
	dir, w := newDir(t), start(t, quiet())
	add(t, w, dir)
	tested(t, w, dir)
	write(t, filepath.Join(dir, "X-1-done.json"), "{}")
	until(t, w, "the file", func() bool { return has(scan(t, w, dir), "X-1-done.json", "{}") })
	if mode, degraded := w.Health(dir); mode != ModeEvents || degraded != "" {
		t.Errorf("health: %s %q", mode, degraded)
	}
}
