package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMkdirBelow(t *testing.T) {
	top := t.TempDir()
	base := filepath.Join(top, "base")
	if err := MkdirBelow(base, filepath.Join(base, "a", "b"), 0o700); !errors.Is(err, ErrGone) {
		t.Errorf("below what is gone: %v", err)
	}
	if _, err := os.Lstat(base); err == nil {
		t.Error("it was made")
	}
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := MkdirBelow(base, filepath.Join(base, "a", "b"), 0o700); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(base, "a", "b")); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	if err := MkdirBelow(base, base, 0o700); err != nil {
		t.Error(err)
	}
	if err := MkdirBelow(base, filepath.Join(top, "beside"), 0o700); err == nil {
		t.Error("beside it: made")
	}
	if err := os.Symlink(top, filepath.Join(base, "out")); err != nil {
		t.Fatal(err)
	}
	if err := MkdirBelow(base, filepath.Join(base, "out", "c"), 0o700); err == nil {
		t.Error("through a link that leads out: made")
	}
}
