package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/layout"
)

// What the launches of some runs have left goes, that of others stays, and no link is followed.
func TestForget(t *testing.T) {
	t.Parallel()
	w := New(Options{Layout: layout.Layout{Root: t.TempDir(), State: t.TempDir()}})
	put := func(dirs ...string) {
		t.Helper()
		for _, dir := range dirs {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	in := func(run string) (dirs []string) {
		for _, kind := range []string{"homes", "gits", "launches", "attempts"} {
			dirs = append(dirs, filepath.Join(w.State, kind, run))
		}
		return append(dirs, filepath.Join(w.Root, ".workflow/runs", run, "A.1"))
	}
	put(in("far-1")...)
	put(in("far-2")...)
	put(in("far-1.t.1")[:4]...)
	if err := os.Chmod(in("far-1")[0], 0o000); err != nil {
		t.Fatal(err)
	}
	if err := w.Forget(".workflow/runs/far-1", []string{"far-1", "far-1.t.1"}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(in("far-1"), in("far-1.t.1")[:4]...) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	for _, dir := range in("far-2") {
		if _, err := os.Lstat(filepath.Join(dir, "x")); err != nil {
			t.Error(err)
		}
	}

	away := t.TempDir()
	put(filepath.Join(away, "far-3"))
	if err := os.Rename(filepath.Join(w.Root, ".workflow/runs"), filepath.Join(w.Root, "runs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(w.Root, ".workflow/runs")); err != nil {
		t.Fatal(err)
	}
	if err := w.Forget(".workflow/runs/far-3", []string{"far-3"}); err == nil {
		t.Error("a link is followed")
	}
	if _, err := os.Lstat(filepath.Join(away, "far-3", "x")); err != nil {
		t.Error(err)
	}
}
