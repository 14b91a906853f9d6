//go:build unix

package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAPipeForASpecHoldsNothingUp: the loop opens nothing that can block it.
func TestAPipeForASpecHoldsNothingUp(t *testing.T) {
	b := handled(t)
	dir := filepath.Join(t.TempDir(), ".workflow", "specs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "two.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan Status, 1)
	go func() {
		s, sources := statusOf(b.core, filepath.Dir(filepath.Dir(dir)), all("", false), nil)
		s.drift(sources)
		done <- s
	}()
	select {
	case s := <-done:
		if !s.Runs[0].SpecDrift {
			t.Error("the spec is another one now")
		}
	case <-time.After(30 * time.Second):
		if f, err := os.OpenFile(filepath.Join(dir, "two.yaml"), os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
		t.Fatal("the loop hangs")
	}
}
