package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// plant commits a file that is not in the folder.
func (r *repo) plant(file string) {
	r.Helper()
	r.run("update-index", "--add", "--cacheinfo", "100644,"+r.run("hash-object", "-w", "a.txt")+","+file)
	r.run("commit", "-qm", "work")
}

// TestTakeRefusesPlantedFiles: no commit of a step, not even one in the middle, brings a file into an inbox.
func TestTakeRefusesPlantedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *repo)
		file string
	}{
		"an answer":    {func(r *repo) { r.plant(".workflow/signals/G-pass.json") }, "signals/G-pass.json"},
		"what ran":     {func(r *repo) { r.plant(".workflow/runs/q-1/A.1/signal.json") }, "q-1/A.1/signal.json"},
		"a failure":    {func(r *repo) { r.plant("sub/.workflow/retry-context/x.md") }, "sub/.workflow/retry-context/x.md"},
		"another case": {func(r *repo) { r.plant(".Workflow/SIGNALS/G-pass") }, "SIGNALS/G-pass"},
		"a link there": {func(r *repo) { r.plant("deep/.workflow/signals") }, "deep/.workflow/signals"},
		"in the middle": {func(r *repo) {
			r.plant(".workflow/signals/G-pass")
			r.run("rm", "-q", "--cached", ".workflow/signals/G-pass")
			r.run("commit", "-qm", "not any more")
		}, "signals/G-pass"},
		"of old": {func(r *repo) { // from a commit that the base has, and has removed again
			r.run("read-tree", "old")
			r.run("reset", "-q", "--soft", r.run("commit-tree", "-p", "HEAD", "-p", "old", "-m", "with it", r.run("write-tree")))
		}, "signals/old-pass"},
		"of another root, in no commit": {func(r *repo) { r.write("sub/.workflow/signals/G-pass", "") }, "sub/.workflow/signals/G-pass"},
		"of its own root, in no commit": {func(r *repo) { r.write(".workflow/signals/G-pass", "") }, ""},
		"the audit":                     {func(r *repo) { r.plant(".workflow/audit/x.json") }, ""},
		"a removal": {func(r *repo) {
			r.run("rm", "-q", "--cached", ".workflow/signals/had-pass")
			r.run("commit", "-qm", "away")
		}, ""},
		"names that look like it": {func(r *repo) { r.plant("workflow/signals/x"); r.plant(".workflow/specs/signals/x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.plant(".workflow/signals/had-pass")
			r.plant(".workflow/signals/old-pass")
			r.run("branch", "old")
			r.run("rm", "-q", "--cached", ".workflow/signals/old-pass")
			r.run("commit", "-qm", "gone again")
			f := r.folder()
			f.Own = []string{".workflow/audit", ".workflow/retry-context", ".workflow/runs", ".workflow/signals"}
			o := Order{Run: "w-1", Step: "X-1", N: 1, Base: r.run("rev-parse", "HEAD"), Branch: "refs/heads/main"}
			was, err := f.Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Found = was.Found
			r.write("a.txt", "work\n")
			c.do(r)
			taken, err := f.Take(t.Context(), o, r.run("rev-parse", "HEAD"), was)
			var no *Refused
			switch {
			case c.file == "" && err != nil, c.file != "" && (!errors.As(err, &no) || !strings.Contains(no.Why, c.file+`"`)):
				t.Errorf("%+v %v", taken, err)
			case c.file == "" && strings.Contains(r.listing(taken.Commit), "G-pass"):
				t.Errorf("taken: %s", r.listing(taken.Commit))
			}
		})
	}
}
