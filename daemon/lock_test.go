//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestLockOfTheDead: who is killed while it starts a process has left its lock to that one for a moment. The next one waits;
// for a process that lives it does not.
func TestLockOfTheDead(t *testing.T) {
	const left = 300 * time.Millisecond
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, waits := range map[int]bool{dead.Process.Pid: true, os.Getpid(): false} {
		dir := t.TempDir()
		lock, err := TakeLock(dir)
		if err != nil {
			t.Fatal(err)
		}
		heir := exec.Command("sleep", fmt.Sprint(left.Seconds()))
		heir.ExtraFiles = []*os.File{lock.f}
		began := time.Now()
		if err := heir.Start(); err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "holder"), fmt.Append(nil, pid), 0o600); err != nil {
			t.Fatal(err)
		}
		next, err := TakeLock(dir)
		var held *Held
		switch took := time.Since(began); {
		case waits && (err != nil || took < left):
			t.Errorf("after a dead one: %v after %v", err, took)
		case !waits && (!errors.As(err, &held) || held.PID != pid || took >= left):
			t.Errorf("beside one that lives: %v after %v", err, took)
		}
		if next != nil {
			_ = next.Release()
		}
		if err := heir.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
