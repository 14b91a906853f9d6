package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// readFS is a read-only disk.
type readFS struct {
	FS
	t *testing.T
}

func (r readFS) OpenWrite(name string) (File, error) { return nil, r.wrong(name) }
func (r readFS) Create(name string) (File, error)    { return nil, r.wrong(name) }
func (r readFS) Rename(_, name string) error         { return r.wrong(name) }
func (r readFS) Remove(name string) error            { return r.wrong(name) }
func (r readFS) SyncDir(name string) error           { return r.wrong(name) }

func (r readFS) wrong(name string) error {
	r.t.Errorf("%s was to be changed", name)
	return fs.ErrPermission
}

// TestOpenRead: a reader needs no write permission, changes nothing, and reads on beside the
// writer.
func TestOpenRead(t *testing.T) {
	dir := t.TempDir()
	w := mustOpen(t, dir, nil)
	mustAppend(t, w, entry(1), entry(2))
	if err := w.SaveSnapshot(2, []byte("two")); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, entry(3))
	name := filepath.Join(dir, FileName)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":4,"at`); err != nil { // a running write
		t.Fatal(err)
	}
	f.Close()
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l, rec, err := OpenRead(dir, Options{FS: readFS{OSFS(), t}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if rec.Records != 3 || rec.Snapshot != 2 || rec.TornBytes != 12 || rec.TornFile != "" {
		t.Errorf("%+v", rec)
	}
	if got := numbers(t, l); len(got) != 3 || got[2] != 3 {
		t.Errorf("%v", got)
	}
	if seq, payload, ok := l.Snapshot(); !ok || seq != 2 || string(payload) != "two" {
		t.Errorf("%d %q %v", seq, payload, ok)
	}
	if _, _, err := l.Append(entry(4)); !errors.Is(err, ErrReading) {
		t.Errorf("append: %v", err)
	}
	if err := l.SaveSnapshot(3, nil); !errors.Is(err, ErrReading) {
		t.Errorf("snapshot: %v", err)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("the journal was changed: %v", err)
	}
	if _, _, err := OpenRead(t.TempDir(), Options{FS: readFS{OSFS(), t}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no journal: %v", err)
	}
}
