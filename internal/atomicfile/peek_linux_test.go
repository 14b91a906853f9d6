package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPeek: Dir returns what Lstat does, for folders only.
func TestPeek(t *testing.T) {
	p := NewPeek()
	if p == nil {
		t.Skip("kernel: no openat2 with RESOLVE_CACHED")
	}
	dir := filepath.Join(t.TempDir(), "folder")
	file, link := filepath.Join(filepath.Dir(dir), "file"), filepath.Join(filepath.Dir(dir), "link")
	for _, err := range []error{os.Mkdir(dir, 0o700), os.WriteFile(file, nil, 0o600), os.Symlink(dir, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o700 | os.ModeSetgid, 0o777 | os.ModeSticky, 0o500 | os.ModeSetuid} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, "/", "/proc", "/dev/shm"} {
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := p.Dir(path)
			if want := StatOf(info); !ok || path != "/proc" && got != want { // processes come and go
				t.Errorf("%s: %+v %t, want %+v", path, got, ok, want)
			}
		}
	}
	for _, path := range []string{file, link, filepath.Join(dir, "missing"), ""} {
		if got, ok := p.Dir(path); ok {
			t.Errorf("%q: %+v", path, got)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { p.Dir(dir) }); allocs != 0 {
		t.Errorf("%.0f allocations for a look", allocs)
	}
	before, _ := p.Dir(dir)
	if err := os.Chtimes(dir, time.Time{}, time.Unix(1, 2)); err != nil {
		t.Fatal(err)
	}
	if after, ok := p.Dir(dir); !ok || after.ModTime.Equal(before.ModTime) || after.Same(before) {
		t.Errorf("%+v %t after a change", after, ok)
	}
}
