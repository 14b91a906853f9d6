package tree

import (
	"path/filepath"
	"testing"
)

// TestProcessesOfATaking: each git process costs 2 ms. By hand it takes two; sluice needs more to
// compare, to commit and to keep what was taken.
func TestProcessesOfATaking(t *testing.T) {
	r := newRepo(t)
	f := Folder{Repo: r.git, Top: r.dir}
	o := Order{Run: "w-1", Step: "A", N: 1, Base: r.run("rev-parse", "HEAD")}
	was, err := f.Find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Found = was.Found
	for i, text := range []string{"one\n", "two\n", "two\n"} {
		r.write("a.txt", text)
		before := r.git.Started()
		got, err := f.Take(t.Context(), o, o.Base, was)
		if err != nil {
			t.Fatal(err)
		}
		most := int64(5) // add, write-tree, diff-tree, commit-tree, update-ref
		switch i {
		case 0:
			most += 1 // the base's time is unknown at first
		case 2:
			most = 4 // nothing has changed: no new commit
		}
		if o.Found != was.Found {
			most++ // diff-tree since before the run, for changed ignore rules
		}
		if n := r.git.Started() - before; n > most {
			t.Errorf("taking %d: %d git processes, at most %d", i+1, n, most)
		}
		if tree := r.run("rev-parse", got.Commit+"^{tree}"); i == 2 != (got.Commit == o.Base) || tree == "" {
			t.Errorf("taking %d: %+v", i+1, got)
		}
		o.Base, o.Found, o.N = got.Commit, got.Commit, o.N+1
	}
}

// TestCheckedOutIsRead: a checkout's branch is read from its file, with the same result as git's.
func TestCheckedOutIsRead(t *testing.T) {
	r := newRepo(t)
	linked := filepath.Join(filepath.Dir(r.dir), "linked")
	r.run("worktree", "add", "-q", "-b", "a/b", linked)
	r.run("pack-refs", "--all")
	look := func(top, want string) {
		t.Helper()
		before := r.git.Started()
		if got, err := CheckedOut(t.Context(), r.git, top); err != nil || got != want || r.git.Started() != before {
			t.Errorf("%s: %q %v, want %q; %d git processes", top, got, err, want, r.git.Started()-before)
		}
		if now, err := r.git.NamedBy(t.Context(), top); err != nil || now.Branch != want {
			t.Errorf("%s: by its refs %q %v", top, now.Branch, err)
		}
	}
	branch := r.run("symbolic-ref", "HEAD")
	look(r.dir, branch)
	look(linked, "refs/heads/a/b")
	r.run("checkout", "-q", "--detach")
	look(r.dir, "")
	r.run("checkout", "-q", "--orphan", "new")
	look(r.dir, "refs/heads/new")
	if got, err := CheckedOut(t.Context(), r.git, filepath.Join(r.dir, "none")); err != nil || got != "" {
		t.Errorf("no checkout: %q %v", got, err)
	}
}
