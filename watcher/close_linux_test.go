package watcher

import (
	"errors"
	"os"
	"testing"
	"time"
)

// TestCloseBesideAnError: Close ends while the system's events have an error that nobody has read. A folder that was
// renamed and removed has one: its watch is gone.
func TestCloseBesideAnError(t *testing.T) {
	for range 300 {
		dir := newDir(t)
		w := New(quiet())
		add(t, w, dir)
		if err := errors.Join(os.Rename(dir, dir+"2"), os.RemoveAll(dir+"2")); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- w.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("Close does not end")
		}
	}
}
