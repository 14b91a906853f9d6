package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plainFolder is a folder outside any checkout, with its store.
func plainFolder(t *testing.T) (dir, store string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store = filepath.Join(dir, "state", "store.git")
	dir = filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(dir, "sub", ".workflow"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, store
}

func putFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStore: the trees of a folder outside any checkout are kept and compared; nothing in the
// folder is read as its git folder.
func TestStore(t *testing.T) {
	dir, store := plainFolder(t)
	putFile(t, filepath.Join(dir, "a.txt"), "one\n")
	take := func(name string) string {
		t.Helper()
		r, err := OpenStore(ctx(t), store, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if head, err := r.Head(ctx(t), dir); head != "" || err != nil || !r.Plain() {
			t.Fatalf("%q, %v", head, err)
		}
		files, err := r.FolderTree(ctx(t), dir, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		commit, err := r.CommitTree(ctx(t), files, "taken\n")
		if err == nil {
			err = r.Keep(ctx(t), Own("taken", name), commit)
		}
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	first := take("w-1/A.1")
	// An agent's changes to the folder are not trusted: neither a repo's index nor its settings and
	// refs.
	s := &sandbox{t: t, dir: dir}
	s.git("init", "-q")
	s.git("add", "a.txt")
	s.git("update-index", "--assume-unchanged", "a.txt")
	s.git("config", "filter.x.clean", "echo filtered")
	putFile(t, filepath.Join(dir, ".git", "info", "attributes"), "* filter=x\n")
	putFile(t, filepath.Join(dir, ".git", "info", "exclude"), "new.txt\n")
	putFile(t, filepath.Join(dir, "a.txt"), "two\n")
	putFile(t, filepath.Join(dir, "new.txt"), "new\n")
	second := take("w-1/A.2")
	r, err := OpenStore(ctx(t), store, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if sha, _, err := r.Kept(ctx(t), "w-1/A.1"); sha != first || err != nil {
		t.Errorf("%s, %v", sha, err)
	}
	patch, _, err := r.Between(ctx(t), first, second, 1<<20, Look{})
	if got := string(patch); err != nil || !strings.Contains(got, "-one\n+two\n") || !strings.Contains(got, "+new\n") || strings.Contains(got, ".git/") {
		t.Errorf("%v\n%s", err, got)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := r.CheckoutAt(ctx(t), out, first); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "a.txt")); string(text) != "one\n" {
		t.Errorf("%q, %v", text, err)
	}
	if top, err := r.TopOf(filepath.Join(dir, "sub")); top != dir || err != nil {
		t.Errorf("%s, %v", top, err)
	}
	if top, err := r.TopOf(out); err == nil {
		t.Errorf("a folder elsewhere: %s", top)
	}
}

// TestCompactStore: unreferenced objects leave a store after a day, and kept ones stay.
func TestCompactStore(t *testing.T) {
	dir, store := plainFolder(t)
	r, err := OpenStore(ctx(t), store, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	keep := func(run, text string) string {
		t.Helper()
		putFile(t, filepath.Join(dir, "a.txt"), text)
		files, err := r.FolderTree(ctx(t), dir, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		commit, err := r.CommitTree(ctx(t), files, run+"\n")
		if err == nil {
			err = r.Keep(ctx(t), Own("taken", run+"/A.1"), commit)
		}
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	has := func(commit string) bool {
		t.Helper()
		ok, err := r.HasCommit(ctx(t), commit)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	gone, stays := keep("w-1", "one\n"), keep("w-2", "two\n")
	if err := r.Drop(ctx(t), "w-1"); err != nil {
		t.Fatal(err)
	}
	fresh := keep("w-3", "three\n")
	if err := r.Drop(ctx(t), "w-3"); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(store, "objects", gone[:2], gone[2:]), old, old); err != nil {
		t.Fatal(err)
	}
	if err := r.Compact(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if has(gone) || !has(stays) || !has(fresh) {
		t.Errorf("dropped: %v, kept: %v, fresh: %v", has(gone), has(stays), has(fresh))
	}
	if _, err := os.Lstat(filepath.Join(store, "objects", stays[:2], stays[2:])); err == nil {
		t.Error("it is not packed")
	}
	keep("w-4", "four\n")
}

// TestPlainTop: a root outside any checkout is found from below, but not inside a checkout or if
// another user owns it.
func TestPlainTop(t *testing.T) {
	dir, _ := plainFolder(t)
	root, below := filepath.Join(dir, "sub"), filepath.Join(dir, "sub", "deep")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{root: root, below: root, dir: "", filepath.Join(dir, "none"): ""} {
		if got := PlainTop(at, ".workflow"); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	if os.Getuid() == 0 {
		mark := filepath.Join(root, ".workflow")
		if err := os.Lchown(mark, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if got := PlainTop(below, ".workflow"); got != "" {
			t.Errorf("another user's: %q", got)
		}
		if err := os.Lchown(mark, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	before := PlainID(root)
	(&sandbox{t: t, dir: root}).git("init", "-q")
	if got := PlainTop(below, ".workflow"); got != "" {
		t.Errorf("in a checkout: %q", got)
	}
	if common, err := CommonDir(root); err != nil || RepoID(common) != before {
		t.Errorf("%s, %v, and before %s", common, err, before)
	}
}
