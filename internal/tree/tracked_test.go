package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTracking: a file of an inbox is git's if the index has it or the commit that is checked out, and
// so is all behind a link; nobody knows while a git is at work.
func TestTracking(t *testing.T) {
	const pass, run = ".workflow/signals/G-pass.json", ".workflow/signals/w-1/G-pass.json"
	r := newRepo(t)
	k := &Tracking{Repo: r.git}
	at := r.dir
	is := func(file string, want bool) {
		t.Helper()
		if got, err := k.Has(t.Context(), at, filepath.Join(at, file)); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", file, got, err, want)
		}
	}
	r.write(pass, "{}")
	r.write(run, "{}")
	r.write(".workflow/specs/w.yaml", "workflow: {id: w}\n")
	r.run("add", ".workflow/specs")
	is(pass, false)
	started := r.git.Started()
	is(run, false)
	if n := r.git.Started() - started; n > 0 {
		t.Errorf("%d gits asked again what is known", n)
	}

	// Staged alone, committed alone, both.
	r.run("add", "-f", run)
	is(run, true)
	is(pass, false)
	r.run("commit", "-qm", "an answer")
	is(run, true)
	r.run("rm", "-q", "--cached", run)
	is(run, true)
	r.run("commit", "-qm", "none")
	is(run, false)

	// A link in the place of a folder; another case, which some file systems ignore.
	blob := r.run("hash-object", "-w", "a.txt")
	for _, entry := range []string{"120000," + blob + ",.workflow/signals", "100644," + blob + ",.Workflow/SIGNALS/g-pass.json"} {
		r.run("update-index", "--add", "--cacheinfo", entry)
		is(pass, true)
		is(run, entry[0] == '1' && entry[1] == '2')
		r.run("reset", "-q")
		is(pass, false)
	}
	r.write(".git/index.lock", "")
	if _, err := k.Has(t.Context(), at, filepath.Join(at, pass)); !errors.Is(err, ErrBusy) {
		t.Errorf("while a git is at work: %v", err)
	}
	if err := os.Remove(filepath.Join(r.dir, ".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	is(pass, false)

	// Inboxes in a folder of the checkout, in a linked worktree with an index of its own, in no checkout.
	r.run("update-index", "--add", "--cacheinfo", "100644,"+blob+",sub/"+pass)
	is("sub/"+pass, true)
	is(pass, false)
	wt := filepath.Join(filepath.Dir(r.dir), "wt")
	r.run("worktree", "add", "-q", "-b", "other", wt)
	at = wt
	is(pass, false)
	r.run("-C", wt, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+pass)
	is(pass, true)
	at = r.dir
	is(pass, false)
	at = filepath.Dir(r.dir)
	is(pass, false)
	is(pass, false)
	if _, err := k.Has(t.Context(), r.dir, filepath.Join(r.dir, "G-pass.json")); err == nil {
		t.Error("a file outside an inbox")
	}
}
