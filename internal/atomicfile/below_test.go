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

// TestPlainDir: what is a link, behind one, missing or a file is no plain folder.
func TestPlainDir(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(top, "a", "b"), 0o700))
	must(t, os.Symlink("a", filepath.Join(top, "link")))
	must(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	known := PlainDir(top) // not on every system
	for name, want := range map[string]bool{"a/b": known, "link": false, "link/b": false, "file": false, "none": false} {
		if got := PlainDir(filepath.Join(top, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if PlainDir("a") {
		t.Error("a relative path")
	}
	for name, want := range map[string]bool{"a/c": known, "a/b": false, "link/d": false, "none/e": false, "file/f": false} {
		if got := MkdirPlain(filepath.Join(top, name), 0o700); got != want {
			t.Errorf("%s: made: %v", name, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(top, "a", "d")); err == nil {
		t.Error("it was made through a link")
	}
}

// TestPut: what is there is replaced whole, and OpenRegular reads it at its limit and not beyond.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"a longer one", "short", ""} {
		must(t, Put(filepath.Join(dir, "f"), []byte(text), 0o600))
		data, st, err := OpenRegular(dir, "f", int64(len(text)))
		if err != nil || string(data) != text || st.Mode != 0o600 {
			t.Errorf("%q: %q, %v, %v", text, data, st.Mode, err)
		}
		if _, _, err := OpenRegular(dir, "f", int64(len(text))-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%q: beyond the limit: %v", text, err)
		}
	}
	if err := Put(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its folder: %v", err)
	}
	look, err := Lstat(dir, "f")
	must(t, err)
	if _, st, err := OpenRegular(dir, "f", 0); err != nil || st != look {
		t.Errorf("%+v by its descriptor, %+v by its name: %v", st, look, err)
	}
}

// TestReadFd: a file that has grown since its size was looked up is read on, up to the limit.
func TestReadFd(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("0123456789"), 0o600))
	for most, want := range map[int64]string{20: "0123456789", 10: "0123456789", 4: "0123"} {
		fd, _, err := open(dir, "f")
		must(t, err)
		data, err := readFd(fd, 1, most)
		must(t, closeFd(fd))
		if err != nil || string(data) != want {
			t.Errorf("at most %d: %q, %v", most, data, err)
		}
	}
}
