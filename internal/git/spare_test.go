package git

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// TestSpare: a folder prepared ahead, from any earlier state of the repo, equals a new one; and if
// nothing has changed since, no file is created for it.
func TestSpare(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	dir := t.TempDir()
	spare := filepath.Join(dir, "spare")
	n := 0
	folder := func(spare string) string {
		t.Helper()
		now, err := r.NamedBy(ctx(t), s.dir)
		if err != nil {
			t.Fatal(err)
		}
		n++
		f := Folder{Dir: filepath.Join(dir, "runs", string(rune('a'+n))), Top: s.dir, Branch: now.Branch, Base: now.Head, Stores: []string{"/store"}, Ignore: []string{"line"}, Now: now, Spare: spare}
		if err := r.MakeFolder(ctx(t), f); err != nil {
			t.Fatal(err)
		}
		return f.Dir
	}
	folder("")
	for _, c := range []struct {
		what   string
		change func()
		most   int // files created if nothing has changed since
	}{
		{"nothing", func() {}, 0},
		{"a branch", func() { s.git("branch", "more") }, 0},
		{"a commit", func() { s.write("b.txt", "two\n"); s.commit("second") }, 0},
		{"what is staged", func() { s.write("c.txt", "three\n"); s.git("add", "c.txt") }, 0},
		{"no branch", func() { s.git("checkout", "-q", "--detach") }, 0},
		{"a setting", func() { s.git("config", "user.name", "Bob") }, 0},
		{"a new list", func() { s.write(".git/info/attributes", "* text\n") }, 0},
		{"a list that goes", func() { _ = os.Remove(filepath.Join(s.dir, ".git/info/attributes")) }, 0},
		{"a split index", func() { s.git("update-index", "--split-index") }, 2},
		{"no index", func() { _ = os.Remove(filepath.Join(s.dir, ".git/index")) }, 2},
	} {
		what := c.what
		for _, name := range []string{"before", "again"} { // the last folder made is the model of the next
			// of another process
			if err := os.MkdirAll(filepath.Join(spare, "hooks"), 0o700); name == "before" && err != nil {
				t.Fatal(err)
			}
			if err := r.MakeSpare(spare); err != nil {
				t.Fatal(err)
			}
			ahead := inodes(t, spare)
			if name == "before" {
				c.change()
			}
			with := folder(spare)
			without := folder("")
			if got, want := texts(t, with), texts(t, without); !maps.Equal(got, want) {
				for file := range maps.Keys(want) {
					if got[file] != want[file] {
						t.Errorf("%s, %s: %s is %.500q, made anew %.500q", what, name, file, got[file], want[file])
					}
				}
				t.Errorf("%s, %s: %d files and folders, made anew %d", what, name, len(got), len(want))
			}
			// git tells by it which entries may be stale
			if was, err := os.Stat(filepath.Join(s.dir, ".git/index")); err == nil {
				if is, err := os.Stat(filepath.Join(with, indexFile)); err != nil || !is.ModTime().Equal(was.ModTime()) {
					t.Errorf("%s, %s: the index is not of the time that the repo's has: %v", what, name, err)
				}
			}
			if _, err := os.Lstat(spare); err == nil {
				t.Errorf("%s: the spare folder is used, and there", what)
			}
			if c.what != "nothing" && name == "before" {
				continue
			}
			made := 0
			for file, info := range inodes(t, with) {
				if was, ok := ahead[file]; !ok || !os.SameFile(info, was) {
					made++
				}
			}
			if made > c.most {
				t.Errorf("%s, %s: %d files and folders were made, at most %d", what, name, made, c.most)
			}
		}
	}
}

func inodes(t *testing.T, dir string) map[string]fs.FileInfo {
	t.Helper()
	out := map[string]fs.FileInfo{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel], err = d.Info()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func texts(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for file, info := range inodes(t, dir) {
		if out[file] = info.Mode().String(); info.Mode().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			out[file] += string(data)
		}
	}
	if !slices.Contains(slices.Collect(maps.Keys(out)), "HEAD") {
		t.Errorf("no git folder: %q", out)
	}
	return out
}

// TestSpareOfTwoLaunches: concurrent launches prepare one spare folder, and it is complete.
func TestSpareOfTwoLaunches(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	dir := t.TempDir()
	spare := filepath.Join(dir, "spare")
	now, err := r.NamedBy(ctx(t), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	folder := func(spare string) string {
		n++
		f := Folder{Dir: filepath.Join(dir, "runs", strconv.Itoa(n)), Top: s.dir, Branch: now.Branch, Base: now.Head, Stores: []string{"/store"}, Now: now, Spare: spare}
		if err := r.MakeFolder(ctx(t), f); err != nil {
			t.Fatal(err)
		}
		return f.Dir
	}
	want := slices.Sorted(maps.Keys(texts(t, folder(""))))
	for range 200 {
		var both sync.WaitGroup
		for range 2 {
			folder("") // there is a model for each of them
			both.Go(func() {
				if err := r.MakeSpare(spare); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if got := slices.Sorted(maps.Keys(texts(t, folder(spare)))); !slices.Equal(got, want) {
			t.Fatalf("the launch has %q, and not %q", got, want)
		}
	}
}

// TestFoldersOfAnyName: what is looked for by a pattern is found whatever characters the repo's path has.
func TestFoldersOfAnyName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*?")
	packs := filepath.Join(dir, "objects", "pack")
	shared := filepath.Join(dir, "sharedindex.1")
	if err := os.MkdirAll(packs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{shared, filepath.Join(packs, "p.promisor")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := sharedIndexes(dir); err != nil || !slices.Equal(found, []string{shared}) {
		t.Errorf("shared parts of the index: %q %v", found, err)
	}
	if (&place{common: dir}).promises() == "" {
		t.Error("it is not seen as a partial clone")
	}
}
