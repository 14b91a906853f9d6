package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestEmptyObjects: an object that a power cut left empty is removed and written again; nobody's work is to blame, and no
// other file is touched.
func TestEmptyObjects(t *testing.T) {
	s := newSandbox(t)
	first := s.git("rev-parse", "HEAD")
	r := s.open()
	tree := s.git("rev-parse", "HEAD^{tree}")
	made, err := r.CommitTree(t.Context(), tree, "taken", first)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, ".git/objects", made[:2], made[2:])
	if err := errors.Join(os.Chmod(file, 0o644), os.Truncate(file, 0)); err != nil {
		t.Fatal(err)
	}
	r = s.open() // after the power cut
	var cmd *CommandError
	if _, err := r.Descends(t.Context(), made, first); err == nil || errors.As(err, &cmd) {
		t.Errorf("%T %v", err, err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty file: %v", err)
	}
	if again, err := r.CommitTree(t.Context(), tree, "taken", first); err != nil || again != made {
		t.Errorf("made again: %s, %v; want %s", again, err, made)
	}
	if is, err := r.Descends(t.Context(), made, first); err != nil || !is {
		t.Errorf("%v %v", is, err)
	}
	if err := removeEmpty(filepath.Join(s.dir, ".git/objects"), "object file x/"+made[:2]+"/"+made[2:]+" is empty"); err != nil {
		t.Errorf("a whole object: %v", err)
	}
	if is, err := s.open().Descends(t.Context(), made, first); err != nil || !is {
		t.Errorf("a whole object was removed: %v %v", is, err)
	}
}
