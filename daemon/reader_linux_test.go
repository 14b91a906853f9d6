package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/engine"
)

// asNobody has the file system see this goroutine as one without rights: root writes everywhere.
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

// TestWhoMayOnlyReadIsShown: a state folder that may only be read is shown, served or not.
func TestWhoMayOnlyReadIsShown(t *testing.T) {
	root := t.TempDir()
	s := serveTest(t, root, newStage())
	if _, err := s.client.Do(t.Context(), engine.RunRequested{Workflow: "two", Source: "two"}, "command"); err != nil {
		t.Fatal(err)
	}
	readable := func(perm os.FileMode) {
		for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		err := filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, perm|perm&0o444>>2)
			}
			if err == nil && d.Type().IsRegular() {
				return os.Chmod(path, perm)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	readable(0o444)
	look := func(when string) {
		asNobody(t, func() {
			r, err := OpenReader(root, s.state, twoGates)
			if err != nil {
				t.Errorf("%s: %v", when, err)
				return
			}
			defer r.Close()
			if n := len(r.Status("", false).Runs); n != 1 {
				t.Errorf("%s: %d runs", when, n)
			}
		})
	}
	look("while it is served")
	s.stop()
	readable(0o444)
	look("when nobody serves it")
	lock, err := TakeLock(s.state)
	if err != nil {
		t.Fatal(err)
	}
	look("while somebody holds it")
	var held *Held
	if _, err := OpenReader(root, s.state, twoGates); os.Geteuid() == 0 && !errors.As(err, &held) {
		t.Errorf("who may write there is told who holds it: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	readable(0o644)
}
