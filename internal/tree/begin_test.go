//go:build unix

package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (r *repo) read(name string) string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Error(err)
	}
	return string(data)
}

// TestBegin: the folder is prepared for an attempt. What is set aside is kept, also after a kill in
// between; ignored files and sluice's own stay.
func TestBegin(t *testing.T) {
	r := newRepo(t)
	passed := r.run("rev-parse", "HEAD")
	o := Order{Run: "w-1", Step: "X-2", N: 1, Base: passed}
	s := Start{From: passed, Ours: func(file string) bool { return file == "said.json" }}
	if b, err := r.folder().Begin(t.Context(), o, s); err != nil || b.Base != passed || b.Aside != "" {
		t.Fatalf("an unchanged folder: %+v %v", b, err)
	}
	r.write("a.txt", "refused\n")
	r.run("rm", "-q", "--cached", "sub/b.txt")
	if err := os.RemoveAll(filepath.Join(r.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	r.write("sub", "a file in the place of a folder\n")
	r.write("new/stray.txt", "stray\n")
	r.write("said.json", "{}\n")
	r.write("build/cache", "ignored\n")
	status, head := r.run("diff", "--cached", "--name-status"), r.run("rev-parse", "HEAD")
	b, err := r.folder().Begin(t.Context(), o, s)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n", "said.json": "{}\n", "build/cache": "ignored\n"} {
		if got, err := os.ReadFile(filepath.Join(r.dir, file)); err != nil || string(got) != want {
			t.Errorf("%s is %q: %v", file, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.dir, "new")); err == nil {
		t.Error("the stray file is still there")
	}
	if got := r.run("diff", "--name-only", passed, b.Base); got != "said.json" {
		t.Errorf("the base has %s", got)
	}
	if got := strings.Fields(r.run("diff", "--name-only", passed, b.Aside)); !slices.Equal(got, []string{"a.txt", "new/stray.txt", "said.json", "sub", "sub/b.txt"}) {
		t.Errorf("put aside: %v", got)
	}
	if got := r.run("diff", "--cached", "--name-status"); got != status || r.run("rev-parse", "HEAD") != head {
		t.Errorf("the index or HEAD was touched: %s", got)
	}
	// Killed after it kept the files and before it wrote them all: the next one keeps both.
	r.write("a.txt", "half\n")
	again, err := r.folder().Begin(t.Context(), o, s)
	if err != nil {
		t.Fatal(err)
	}
	if list := r.run("rev-list", "refs/sluice/salvage/w-1/X-2.1.before"); !strings.Contains(list, b.Aside) || again.Aside == b.Aside {
		t.Errorf("what was put aside first is lost: %s", list)
	}
	// An attempt whose work could not be taken continues with what it left.
	r.write("a.txt", "on\n")
	s.Keep = true
	if b, err := r.folder().Begin(t.Context(), o, s); err != nil || b.Aside != "" || r.read("a.txt") != "on\n" {
		t.Errorf("%+v %v: a.txt is %q", b, err, r.read("a.txt"))
	}
}

// TestBeginJoins: two parallel commits are merged; conflicts are marked in the folder but not in
// the base, so that their resolution shows.
func TestBeginJoins(t *testing.T) {
	r := newRepo(t)
	passed := r.run("rev-parse", "HEAD")
	side := func(name, text string) string {
		r.run("switch", "-q", "-c", name, passed)
		r.write("a.txt", text)
		r.write(name+".txt", name+"\n")
		r.run("add", "-A")
		r.run("commit", "-qm", name)
		return r.run("rev-parse", "HEAD")
	}
	one, two := side("one", "one\n"), side("two", "two\n")
	r.run("switch", "-q", "main")
	o := Order{Run: "w-1", Step: "J", N: 1, Base: passed}
	b, err := r.folder().Begin(t.Context(), o, Start{From: passed, Join: []Joining{{Commit: one}, {Commit: two}}})
	if err != nil || !slices.Equal(b.Conflicts, []string{"a.txt"}) || !slices.Equal(b.Joined, []string{one, two}) {
		t.Fatalf("%+v %v", b, err)
	}
	if got := r.read("a.txt"); !strings.Contains(got, "<<<<<<<") || !strings.Contains(got, "one\n=======\ntwo\n") {
		t.Errorf("a.txt is %q", got)
	}
	if r.read("one.txt")+r.read("two.txt") != "one\ntwo\n" || r.run("show", b.Base+":a.txt") != "one" {
		t.Errorf("the base has %q", r.run("show", b.Base+":a.txt"))
	}
	r.write("a.txt", "one and two\n")
	o.Found, o.Joined = b.Base, b.Joined
	taken, err := r.folder().Take(t.Context(), o, passed, Before{}) // an agent without a sandbox: HEAD is where it was
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{passed, one, two} {
		r.run("merge-base", "--is-ancestor", c, taken.Commit)
	}
	if got := r.run("diff", "--name-only", b.Base, taken.Commit); got != "a.txt" {
		t.Errorf("its work is %s", got)
	}
	if b, err := r.folder().Begin(t.Context(), Order{Run: "w-1", Step: "J", N: 2, Base: taken.Commit}, Start{From: taken.Commit, Join: []Joining{{Commit: one}, {Commit: two}}}); err != nil || len(b.Joined) > 0 {
		t.Errorf("joined again: %+v %v", b, err)
	}
}

// TestOthers: others' changes since the last taking are found, but not in files where both changed
// the same lines.
func TestOthers(t *testing.T) {
	r := newRepo(t)
	commit := func(files ...string) string {
		for i := 0; i < len(files); i += 2 {
			r.write(files[i], files[i+1])
		}
		r.run("add", "-A")
		r.run("commit", "-qm", "x", "--allow-empty")
		return r.run("rev-parse", "HEAD")
	}
	found := commit("a.txt", "1\n2\n3\n4\n5\n")
	taken := commit("a.txt", "step\n2\n3\n4\n5\n", "work.txt", "work\n")
	apart := commit("a.txt", "step\n2\n3\n4\nmine\n", "mine.txt", "mine\n")
	f := r.folder()
	got, both, err := f.Others(t.Context(), found, taken, apart)
	if err != nil || len(both) > 0 || r.run("show", got+":a.txt") != "1\n2\n3\n4\nmine" || r.run("diff", "--name-only", got, apart) != "a.txt\nwork.txt" {
		t.Errorf("%v %v: %s", both, err, r.run("diff", got, apart))
	}
	over := commit("a.txt", "person\n2\n3\n4\nmine\n", "mine.txt", "more\n")
	got, both, err = f.Others(t.Context(), found, taken, over)
	if err != nil || !slices.Equal(both, []string{"a.txt"}) || r.run("show", got+":a.txt") != "1\n2\n3\n4\n5" || r.run("show", got+":mine.txt") != "more" {
		t.Errorf("%v %v: %s", both, err, r.run("diff", got, over))
	}
}

// TestWithChanges: a file replaces a folder, and a folder a file.
func TestWithChanges(t *testing.T) {
	r := newRepo(t)
	with := r.run("rev-parse", "HEAD")
	r.run("rm", "-qr", "sub")
	r.write("sub", "a file\n")
	r.run("add", "-A")
	r.run("commit", "-qm", "x")
	for _, c := range [][2]string{{with, r.run("rev-parse", "HEAD")}, {r.run("rev-parse", "HEAD"), with}} {
		changes, err := r.git.ChangesBetween(t.Context(), c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.git.WithChanges(t.Context(), c[0], changes); err != nil || got != r.run("rev-parse", c[1]+"^{tree}") {
			t.Errorf("%v: %s %v", c, got, err)
		}
	}
}

// TestJoinUndoesNothing: work from another worktree that names the run's own as a parent, but drops
// its content, removes nothing: no judge has seen that removal.
func TestJoinUndoesNothing(t *testing.T) {
	p := newPerson(t)
	found := p.git("rev-parse", "HEAD")
	p.git("switch", "-q", "-c", "other")
	p.write("x", "other work\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "other")
	p.git("switch", "-q", "main")
	p.write("safe", "passed\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "passed")
	passed := p.git("rev-parse", "HEAD")
	p.git("switch", "-q", "other")
	p.git("merge", "-q", "-s", "ours", "-m", "up to date", "main")
	other := p.git("rev-parse", "HEAD")
	p.git("switch", "-q", "main")
	repo := p.open()
	began, err := Folder{Repo: repo, Top: p.dir}.Begin(t.Context(), Order{Run: "x-1", Step: "C", N: 1, Base: passed},
		Start{From: passed, Join: []Joining{{Commit: other, Found: found}}})
	if err != nil {
		t.Fatal(err)
	}
	if files := p.git("ls-tree", "--name-only", began.Base); !strings.Contains(files, "safe") || !strings.Contains(files, "x") || len(began.Conflicts) > 0 {
		t.Errorf("it begins from\n%s\n%v", files, began.Conflicts)
	}
	if p.read("safe") != "passed\n" || p.read("x") != "other work\n" {
		t.Error("the folder is not what it begins from")
	}
}
