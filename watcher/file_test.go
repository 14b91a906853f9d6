package watcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A change of a file is hinted at, however it is made, also where its folder was made anew; one of
// another file is not.
func TestFileWatch(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := New(Options{})
	defer w.Close()
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := w.WatchFile(filepath.Join(dir, "sub/config.yaml"))
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	hinted := func(t *testing.T, w *Watcher, key string) {
		t.Helper()
		for {
			select {
			case name := <-w.Hints():
				if name == key {
					return
				}
				t.Fatalf("a hint at %s", name)
			case <-time.After(20 * time.Second):
				t.Fatal("no hint")
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.Arm()
	put("sub/other.yaml")
	put("sub/config.yaml")
	hinted(t, w, f.Key())
	put("sub/new")
	move("sub/new", "sub/config.yaml")
	hinted(t, w, f.Key())
	move("sub", "old")
	hinted(t, w, f.Key())
	move("old", "sub")
	f.Arm()
	again := w.WatchFile(filepath.Join(dir, "sub/config.yaml"))
	f.Close()
	put("sub/config.yaml")
	hinted(t, w, again.Key())
	again.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.files) != 0 || len(w.filesIn(filepath.Join(dir, "sub"))) != 0 {
		t.Errorf("still followed: %v", w.files)
	}
}
