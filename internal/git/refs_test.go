package git

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

func (s *sandbox) beside(name string) string { return filepath.Join(filepath.Dir(s.dir), name) }

// A commit is seen wherever it is made: in the main worktree, in a linked one, on a branch with
// slashes, after refs were packed, and on a detached HEAD.
func TestRefsSeeEveryCommit(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "on a branch, detached, in a linked worktree, packed")
	s := newSandbox(t)
	r := s.open()
	s.git("worktree", "add", "-q", "-b", "feat/deep/x", s.beside("wt"))
	s.git("worktree", "add", "-q", "--detach", s.beside("loose"))
	cases := []struct {
		name, dir, ref string
		before         func()
	}{
		{"main", s.dir, "refs/heads/main", func() {}},
		{"slashed branch", s.beside("wt"), "refs/heads/feat/deep/x", func() {}},
		{"packed", s.beside("wt"), "refs/heads/feat/deep/x", func() { s.git("pack-refs", "--all", "--prune") }},
		{"packed and gc", s.dir, "refs/heads/main", func() { s.git("gc", "-q") }},
		{"detached", s.beside("loose"), HeadPrefix + s.beside("loose"), func() {}},
		{"detached main", s.dir, HeadPrefix + s.dir, func() { s.git("checkout", "-q", "--detach") }},
	}
	for _, c := range cases {
		c.before()
		old, err := r.Refs(ctx(t))
		check(t, err)
		s.gitIn(c.dir, "commit", "-q", "--allow-empty", "-m", c.name)
		sha := s.gitIn(c.dir, "rev-parse", "HEAD")
		refs, err := r.Refs(ctx(t))
		check(t, err)
		if refs[c.ref] != sha {
			t.Errorf("%s: %s is %q, want %s", c.name, c.ref, refs[c.ref], sha)
		}
		var not []string
		for _, o := range old {
			not = append(not, o)
		}
		commits, cut, err := r.NewCommits(ctx(t), refs, not, 100)
		check(t, err)
		if len(commits) != 1 || cut || commits[0].SHA != sha || commits[0].Message != c.name+"\n" {
			t.Errorf("%s: new commits %+v", c.name, commits)
			continue
		}
		if !slices.Contains(commits[0].Refs, c.ref) {
			t.Errorf("%s: reached by %q", c.name, commits[0].Refs)
		}
	}
}

func TestRefsAreOthers(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	s.git("branch", "feat/x")
	s.git("tag", "-a", "-m", "t", "v1")
	s.git("update-ref", "refs/sluice/salvage/r/s.1", "HEAD")
	all, err := r.Refs(ctx(t))
	check(t, err)
	if _, ok := all["refs/sluice/salvage/r/s.1"]; ok || all["refs/tags/v1"] == "" || len(all) != 4 {
		t.Errorf("%v", all)
	}
}

// Ref folders that are links (git-new-workdir creates such) are read like git reads them.
func TestRefsBehindLinks(t *testing.T) {
	s := newSandbox(t)
	s.git("branch", "dir/below")
	for _, name := range []string{"refs/heads/dir", "refs"} {
		at := filepath.Join(s.dir, ".git", name)
		moved := s.beside(filepath.Base(name))
		check(t, os.Rename(at, moved))
		check(t, os.Symlink(moved, at))
		refs, err := s.open().Refs(ctx(t))
		if err != nil || len(refs) != 3 || refs["refs/heads/main"] == "" || refs["refs/heads/dir/below"] == "" {
			t.Errorf("%s: %v %v", name, refs, err)
		}
	}
}

// A ref that is broken, or whose object is gone, hides no other.
func TestRefsBroken(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	s.write(".git/refs/heads/gone", strings.Repeat("ab", 20)+"\n")
	s.git("branch", "torn")
	s.git("pack-refs", "--all")
	s.write(".git/refs/heads/torn", "abc") // packed-refs has its old value
	s.write(".git/refs/heads/.hidden", s.git("rev-parse", "HEAD"))
	s.write(".git/refs/heads/other.lock", s.git("rev-parse", "HEAD"))
	check(t, os.Symlink("main", filepath.Join(s.dir, ".git/refs/heads/linked")))
	s.commit("loose")
	refs, err := r.Refs(ctx(t))
	check(t, err)
	if asked, err := r.askRefs(ctx(t), allRefs); err != nil || len(asked) != 3 {
		t.Errorf("%v %v", asked, err)
	}
	if len(refs) != 4 || refs["refs/heads/main"] == "" || refs["refs/heads/linked"] == "" || refs["refs/heads/gone"] == "" {
		t.Errorf("%v", refs)
	}
	refs["A"] = strings.Repeat("ab", 20) // gone since Refs
	commits, _, err := r.NewCommits(ctx(t), refs, []string{strings.Repeat("cd", 20)}, 10)
	check(t, err)
	if len(commits) != 2 {
		t.Errorf("%d commits, want 2: %v", len(commits), refs)
	}
}

func TestUnborn(t *testing.T) {
	dir := t.TempDir()
	s := &sandbox{t: t, dir: dir}
	s.git("init", "-q")
	r := s.open()
	refs, err := r.Refs(ctx(t))
	if err != nil || len(refs) != 0 {
		t.Errorf("%v %v", refs, err)
	}
	head, err := r.Head(ctx(t), dir)
	if err != nil || head != "" {
		t.Errorf("%q %v", head, err)
	}
	s.write("a", "1")
	changes, err := r.Changed(ctx(t), dir, "")
	if err != nil || !slices.Equal(changes.Files, []string{"a"}) {
		t.Errorf("%v %v", changes, err)
	}
	if _, err := r.AddWorktree(ctx(t), filepath.Join(dir, "wt"), "x"); err == nil || !strings.Contains(err.Error(), "first") {
		t.Errorf("%v", err)
	}
	if _, err := r.Salvage(ctx(t), dir, "r/x.1", "kept"); err != nil {
		t.Error(err)
	}
}

// What distinguishes a rewritten commit from a new one: amend, rebase and cherry-pick keep the
// author's name and date, a revert quotes the subject.
func TestRewrittenCommits(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "what tells a rewritten commit from a new one")
	s := newSandbox(t)
	r := s.open()
	read := func(sha string) Commit {
		t.Helper()
		parent := s.git("rev-parse", sha+"^")
		commits, _, err := r.NewCommits(ctx(t), map[string]string{"refs/heads/x": sha}, []string{parent}, 10)
		check(t, err)
		if len(commits) != 1 {
			t.Fatalf("%d commits", len(commits))
		}
		return commits[0]
	}
	s.write("b.txt", "b\n")
	s.git("add", "-A")
	s.git("commit", "-q", "--date", "2020-01-02T03:04:05+02:00", "-m", "add b [GATE:XG-1]")
	first := read(s.git("rev-parse", "HEAD"))
	if want := time.Date(2020, 1, 2, 1, 4, 5, 0, time.UTC); !first.AuthorDate.Equal(want) || first.AuthorName != "Ann" || first.AuthorEmail != "ann@example.org" {
		t.Errorf("%+v", first)
	}
	s.git("commit", "-q", "--amend", "-m", "add b, better [GATE:XG-1]")
	amended := read(s.git("rev-parse", "HEAD"))
	if amended.SHA == first.SHA || !amended.AuthorDate.Equal(first.AuthorDate) || amended.Tree != first.Tree {
		t.Errorf("amended: %+v", amended)
	}
	s.git("revert", "--no-edit", "HEAD")
	if got := read(s.git("rev-parse", "HEAD")); !strings.HasPrefix(got.Message, `Revert "add b, better [GATE:XG-1]"`) {
		t.Errorf("revert: %q", got.Message)
	}
	s.git("checkout", "-q", "-b", "other", "HEAD~2")
	s.git("cherry-pick", "--allow-empty", amended.SHA)
	picked := read(s.git("rev-parse", "HEAD"))
	if !picked.AuthorDate.Equal(first.AuthorDate) || picked.AuthorName != first.AuthorName {
		t.Errorf("picked: %+v", picked)
	}
}

func TestNewCommitsOrderAndReach(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	base := s.git("rev-parse", "HEAD")
	a := s.commit("a")
	s.git("checkout", "-q", "-b", "side")
	b := s.commit("b")
	s.git("checkout", "-q", "main")
	c := s.commit("c")
	s.git("merge", "-q", "--no-ff", "-m", "merge", "side")
	m := s.git("rev-parse", "HEAD")
	tips := map[string]string{"refs/heads/main": m, "refs/heads/side": b, "refs/tags/old": base}
	commits, cut, err := r.NewCommits(ctx(t), tips, []string{base}, 100)
	check(t, err)
	reach := map[string][]string{}
	place := map[string]int{}
	for i, c := range commits {
		reach[c.SHA], place[c.SHA] = c.Refs, i
	}
	want := map[string][]string{
		a: {"refs/heads/main", "refs/heads/side"}, b: {"refs/heads/main", "refs/heads/side"},
		c: {"refs/heads/main"}, m: {"refs/heads/main"},
	}
	if !reflect.DeepEqual(reach, want) || cut {
		t.Errorf("reach %v", reach)
	}
	if place[a] != 0 || place[m] != 3 {
		t.Errorf("order %v", place)
	}
	commits, cut, err = r.NewCommits(ctx(t), tips, []string{base}, 2)
	if err != nil || len(commits) != 2 || !cut || commits[1].SHA != m {
		t.Errorf("cut: %v %v %v", commits, cut, err)
	}
	if commits, _, err := r.NewCommits(ctx(t), nil, []string{base}, 2); err != nil || commits != nil {
		t.Errorf("no tips: %v %v", commits, err)
	}
	if _, _, err := r.NewCommits(ctx(t), map[string]string{"x": "--all"}, nil, 2); err == nil {
		t.Error("an option went through")
	}
}

// An annotated tag stands for its commit, on both sides.
func TestNewCommitsOfTags(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	s.git("tag", "-a", "-m", "t", "v1")
	old, err := r.Refs(ctx(t))
	check(t, err)
	sha := s.commit("x")
	s.git("tag", "-a", "-m", "t", "v2")
	tag := s.git("rev-parse", "v2")
	commits, _, err := r.NewCommits(ctx(t), map[string]string{"refs/tags/v2": tag}, []string{old["refs/tags/v1"]}, 10)
	check(t, err)
	if len(commits) != 1 || commits[0].SHA != sha || !slices.Equal(commits[0].Refs, []string{"refs/tags/v2"}) {
		t.Errorf("%+v", commits)
	}
}

// Ten thousand commits at once: none missed, in less than five seconds.
func TestCommitStorm(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	base := s.git("rev-parse", "HEAD")
	const storm = 10_000
	var in strings.Builder
	for i := range storm {
		fmt.Fprintf(&in, "commit refs/heads/storm\ncommitter C <c@x> %d +0000\ndata <<EOM\ncommit %d [GATE:XG-%d]\nEOM\n", 1_600_000_000+i, i, i)
		if i == 0 {
			fmt.Fprintf(&in, "from %s\n", base)
		}
	}
	path := s.beside("storm")
	check(t, os.WriteFile(path, []byte(in.String()), 0o600))
	s.git("-c", "alias.imp=!git fast-import --quiet <"+path, "imp")
	refs, err := r.Refs(ctx(t))
	check(t, err)
	commits, cut, err := r.NewCommits(ctx(t), refs, []string{base}, 2*storm) // ctx ends after a minute
	check(t, err)
	if len(commits) != storm || cut {
		t.Fatalf("%d commits", len(commits))
	}
	for i, c := range commits {
		if c.Message != fmt.Sprintf("commit %d [GATE:XG-%d]\n", i, i) {
			t.Fatalf("commit %d: %q", i, c.Message)
		}
	}
}

// An oversized commit hides none that comes with it.
func TestHugeAndOddCommits(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	base := s.git("rev-parse", "HEAD")
	tree := s.git("rev-parse", "HEAD^{tree}")
	put := func(body string) string {
		path := s.beside("object")
		check(t, os.WriteFile(path, []byte(body), 0o600))
		return s.git("hash-object", "-t", "commit", "--literally", "-w", path)
	}
	head := "tree " + tree + "\nparent " + base + "\n"
	tips := map[string]string{
		"huge":  put(head + "author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\n" + strings.Repeat("é", 2<<20)),
		"bad":   put(head + "author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\xff\x00y\n"),
		"odd":   put(head + "author A a@x 99999999999999999999 +0000\ncommitter >< \n\nodd\n"),
		"plain": put(head + "author Ä Ö <a@x> 5 +0100\ncommitter A <a@x> 1 +0000\n\nplain\n"),
	}
	commits, _, err := r.NewCommits(ctx(t), tips, []string{base}, 10)
	check(t, err)
	got := map[string]Commit{}
	for _, c := range commits {
		got[c.Refs[0]] = c
	}
	if len(got) != 4 || got["plain"].AuthorName != "Ä Ö" || got["plain"].AuthorDate.Unix() != 5 {
		t.Errorf("%d commits, %+v", len(got), got["plain"])
	}
	if m := got["huge"].Message; len(m) > MaxMessageBytes || len(m) < MaxMessageBytes-4 || strings.Trim(m, "é") != "" {
		t.Errorf("huge: %d bytes", len(m))
	}
	if m := got["bad"].Message; m != "x\uFFFD\x00y\n" {
		t.Errorf("bad: %q", m)
	}
}

func TestWorktrees(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	s.git("worktree", "add", "-q", "-b", "feat/x", s.beside("a b\nc"))
	s.git("worktree", "add", "-q", "--detach", s.beside("gone"))
	s.git("worktree", "lock", s.beside("a b\nc"))
	check(t, os.RemoveAll(s.beside("gone")))
	trees, err := r.Worktrees(ctx(t))
	check(t, err)
	head := s.git("rev-parse", "HEAD")
	if len(trees) != 3 {
		t.Fatalf("%+v", trees)
	}
	slices.SortFunc(trees[1:], func(a, b Worktree) int { return strings.Compare(a.Path, b.Path) })
	if trees[2].Prunable == "" {
		t.Errorf("%+v", trees[2])
	}
	trees[2].Prunable = ""
	want := []Worktree{
		{Path: s.dir, Head: head, Branch: "refs/heads/main"},
		{Path: s.beside("a b\nc"), Head: head, Branch: "refs/heads/feat/x"},
		{Path: s.beside("gone"), Head: head},
	}
	if !reflect.DeepEqual(trees, want) {
		t.Errorf("got %+v\nwant %+v", trees, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("tree 12\nparent " + strings.Repeat("a", 40) + "\nauthor A <a> 1 +0000\n\nmessage"))
	f.Add([]byte("worktree /x\x00HEAD " + strings.Repeat("a", 40) + "\x00branch refs/heads/x\x00\x00"))
	f.Add([]byte(strings.Repeat("a", 40) + " refs/heads/x\n"))
	f.Add([]byte("tree \nauthor ><<> 9\n\n\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseCommit("x", b); err == nil {
			if len(c.Message) > MaxMessageBytes || c.AuthorDate.Year() > 9999 {
				t.Errorf("%+v", c)
			}
			for _, p := range c.Parents {
				check(t, checkSHA(p))
			}
		}
		for _, w := range parseWorktrees(b) {
			if w.Head != "" {
				check(t, checkSHA(w.Head))
			}
		}
		for name, sha := range parseRefs(b, " ") {
			check(t, checkSHA(sha))
			if !strings.HasPrefix(name, "refs/") {
				t.Errorf("%q", name)
			}
		}
		if s := OneLine(string(b)); strings.ContainsAny(s, "\n\x1b\x00") {
			t.Errorf("%q", s)
		}
	})
}
