package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Run("here", func(t *testing.T) { replaces(t, exchange) })
	t.Run("where files are not exchanged", func(t *testing.T) { replaces(t, func(string, string) error { return errors.ErrUnsupported }) })
}

func replaces(t *testing.T, exchange exchanger) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	put := func(path string, data []byte, perm os.FileMode, was Stat) error {
		_, err := replace(path, data, perm, was, exchange)
		return err
	}
	must(t, os.WriteFile(path, []byte("first"), 0o640))
	was, err := Lstat(dir, "x")
	must(t, err)
	must(t, put(path, []byte("second"), 0o640, was))
	holds(t, dir, "x", "second")

	if err := put(path, []byte("third"), 0o640, was); !errors.Is(err, ErrChanged) {
		t.Errorf("of another file: %v", err)
	}
	holds(t, dir, "x", "second")
	must(t, os.Remove(path))
	if err := put(path, []byte("third"), 0o640, was); !errors.Is(err, ErrChanged) {
		t.Errorf("of none: %v", err)
	}
	if names := list(t, dir); len(names) != 0 {
		t.Errorf("it left %v", names)
	}
}

// TestReplacePutsBack: the file was edited after the last look at it.
func TestReplacePutsBack(t *testing.T) {
	dir := t.TempDir()
	path, tmp := filepath.Join(dir, "x"), filepath.Join(dir, "tmp")
	must(t, os.WriteFile(path, []byte("first"), 0o600))
	was, err := Lstat(dir, "x")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "edit"), []byte("a person's"), 0o600))
	must(t, os.Rename(filepath.Join(dir, "edit"), path))
	must(t, os.WriteFile(tmp, []byte("ours"), 0o600))
	if err := exchange(tmp, path); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("kernel: exchanging two files in one step")
	} else {
		must(t, err)
		must(t, exchange(tmp, path))
	}
	ours, err := Lstat(dir, "tmp")
	must(t, err)
	if err := swapIn(tmp, path, ours, was, exchange); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	holds(t, dir, "x", "a person's")
	holds(t, dir, "tmp", "ours")
	must(t, os.Remove(path))
	if err := swapIn(tmp, path, ours, was, exchange); !errors.Is(err, ErrChanged) {
		t.Errorf("of a file that is gone: %v", err)
	}
}

// TestReplaceKeepsWhatItCannotPutBack: the file was edited after the last look at it, and its name is taken meanwhile by what
// it cannot take the place of.
func TestReplaceKeepsWhatItCannotPutBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, os.WriteFile(path, []byte("first"), 0o600))
	was, err := Lstat(dir, "x")
	must(t, err)
	swaps := 0
	_, err = replace(path, []byte("ours"), 0o600, was, func(a, b string) error {
		if swaps++; swaps > 1 {
			must(t, os.Remove(b))
			must(t, os.MkdirAll(filepath.Join(b, "full"), 0o700))
			return errors.New("no exchange")
		}
		must(t, os.WriteFile(filepath.Join(dir, "edit"), []byte("a person's"), 0o600))
		must(t, os.Rename(filepath.Join(dir, "edit"), b))
		must(t, os.Rename(b, filepath.Join(dir, "swap")))
		must(t, os.Rename(a, b))
		return os.Rename(filepath.Join(dir, "swap"), a)
	})
	names := list(t, dir) // x, and a dotfile
	if !errors.Is(err, ErrChanged) || len(names) != 2 || !strings.Contains(err.Error(), names[0]) {
		t.Fatalf("%v; there is %v", err, names)
	}
	holds(t, dir, names[0], "a person's")
}

func holds(t *testing.T, dir, name, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, want %q (%v)", name, got, want, err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
