package launch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRoomWithoutDescriptors: what cannot be counted for a moment ends no launch.
func TestRoomWithoutDescriptors(t *testing.T) {
	r := &room{dirs: []string{filepath.Join(t.TempDir(), "homes", "w-1")}, bound: gigabyte, name: "1 GB"}
	if err := os.MkdirAll(r.dirs[0], 0o700); err != nil {
		t.Fatal(err)
	}
	var had syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	why := r.over()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if why != "" {
		t.Errorf("it is ended: %s", why)
	}
}
