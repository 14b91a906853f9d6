package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestAhead: what is made ahead is empty, private and used once; what is not there ahead is made, and what a process before
// this one left is not used.
func TestAhead(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	a := ahead{dir: at("runs/" + aheadFolder)}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(a.dir, "1", "planted"), 0o755))
	check(a.folder(at("runs/r/none ahead")))
	check(a.file(at("runs/r/note"), []byte("one")))
	check(a.fill())
	var all sync.WaitGroup
	for i := range 4 * aheadFolders {
		all.Go(func() {
			dir, file := at(fmt.Sprintf("runs/r/%d", i)), at(fmt.Sprintf("runs/r/%d.note", i))
			if err := a.folder(dir); err != nil {
				t.Error(err)
			}
			if err := a.file(file, []byte(dir)); err != nil {
				t.Error(err)
			}
			if err := a.fill(); err != nil {
				t.Error(err)
			}
			if data, err := os.ReadFile(file); err != nil || string(data) != dir {
				t.Errorf("%s: %q %v", file, data, err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(at("runs/r"))
	check(err)
	if len(entries) != 8*aheadFolders+2 {
		t.Errorf("%d files and folders", len(entries))
	}
	for _, e := range entries {
		info, err := e.Info()
		check(err)
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s: %v", e.Name(), info.Mode())
		}
		if in, _ := os.ReadDir(at("runs/r/" + e.Name())); len(in) > 0 {
			t.Errorf("%s holds %v", e.Name(), in)
		}
	}
	check(os.WriteFile(at("runs/r/1/kept"), nil, 0o600))
	check(a.folder(at("runs/r/1")))
	check(a.file(at("runs/r/note"), []byte("two")))
	_, err = os.Lstat(at("runs/r/1/kept"))
	if data, _ := os.ReadFile(at("runs/r/note")); string(data) != "two" || err != nil {
		t.Errorf("what is there is not kept, or not replaced: %q %v", data, err)
	}
	if left, _ := os.ReadDir(a.dir); len(left) != aheadFolders+aheadFiles-1 {
		t.Errorf("%d are there ahead", len(left))
	}
	check(a.folder(at("runs/none/above it")))
	check(a.file(at("runs/nor here/note"), nil))
	if left, _ := os.ReadDir(a.dir); len(left) != aheadFolders+aheadFiles-2 {
		t.Errorf("%d are there ahead, once one could not be used", len(left))
	}
}
