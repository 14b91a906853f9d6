package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/review"
	"sluice/tools/conform"
)

func TestOpen(t *testing.T) {
	s := newSandbox(t)
	s.write("sub/deep/x", "")
	check(t, os.Symlink(s.dir, s.beside("link")))
	for _, dir := range []string{s.dir, filepath.Join(s.dir, "sub", "deep"), s.beside("link")} {
		r, err := Open(ctx(t), dir)
		check(t, err)
		if r.Top() != s.dir || r.CommonDir() != filepath.Join(s.dir, ".git") {
			t.Errorf("%s: %s %s", dir, r.Top(), r.CommonDir())
		}
		scratch := r.scratch
		check(t, r.Close())
		if _, err := os.Stat(scratch); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", scratch)
		}
	}
	_, err := Open(ctx(t), s.beside(""))
	if !errors.Is(err, ErrNoRepo) || !strings.Contains(err.Error(), "run git init") {
		t.Errorf("%v", err)
	}
	if _, err := Open(ctx(t), s.beside("none")); !errors.Is(err, ErrNoRepo) {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", "")
	if _, err := Open(ctx(t), s.dir); !errors.Is(err, ErrNoGit) || !strings.Contains(err.Error(), "install") {
		t.Errorf("%v", err)
	}
}

// Our starter's environment does not redirect git.
func TestEnvironmentIsClean(t *testing.T) {
	s, other := newSandbox(t), newSandbox(t)
	other.commit("other")
	for _, name := range []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"} {
		t.Setenv(name, filepath.Join(other.dir, ".git"))
	}
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other.dir, "x"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.bare")
	t.Setenv("GIT_CONFIG_VALUE_0", "true")
	r := s.open()
	refs, err := r.Refs(ctx(t))
	check(t, err)
	if len(refs) != 2 || r.Top() != s.dir {
		t.Errorf("%s %v", r.Top(), refs)
	}
	if changes, err := r.Changed(ctx(t), s.dir, ""); err != nil || len(changes.Files) != 0 {
		t.Errorf("%v %v", changes, err)
	}
}

func TestAddWorktree(t *testing.T) {
	conform.Rule(t, "1-language worktree", "made, linked, of its branch")
	s := newSandbox(t)
	check(t, os.WriteFile(filepath.Join(s.dir, "run.sh"), nil, 0o755))
	check(t, os.Symlink("a.txt", filepath.Join(s.dir, "link")))
	s.write("sub/c.txt", "c\n")
	s.commit("files")
	s.git("branch", "there")
	s.git("tag", "there", "HEAD~1") // a tag with the branch's name does not matter
	r := s.open()
	for _, branch := range []string{"new", "feat/deep/new", "there"} {
		path := s.beside("wt-" + strings.ReplaceAll(branch, "/", "-"))
		made, err := r.AddWorktree(ctx(t), path, branch)
		check(t, err)
		if got := s.gitIn(path, "symbolic-ref", "HEAD"); !made || got != "refs/heads/"+branch {
			t.Errorf("%s: %v %s", branch, made, got)
		}
		if s.gitIn(path, "rev-parse", "HEAD") != s.git("rev-parse", "main") {
			t.Errorf("%s: another commit", branch)
		}
		// Before status, which would repair an index that does not know its files.
		if got := s.gitIn(path, "diff-files", "--name-only"); got != "" {
			t.Errorf("%s: the index does not know: %s", branch, got)
		}
		if got := s.gitIn(path, "status", "--porcelain"); got != "" {
			t.Errorf("%s: not clean: %s", branch, got)
		}
		info, err := os.Stat(filepath.Join(path, "run.sh"))
		check(t, err)
		if target, err := os.Readlink(filepath.Join(path, "link")); info.Mode()&0o100 == 0 || err != nil || target != "a.txt" {
			t.Errorf("%s: %v %q %v", branch, info.Mode(), target, err)
		}
	}
	if out := s.git("config", "--list", "--local"); strings.Contains(out, "branch.") {
		t.Errorf("settings were made: %s", out)
	}
}

// TestWorktreeInside: a worktree in the person's checkout is not part of their `git add -A`, and
// their own rules stay.
func TestWorktreeInside(t *testing.T) {
	conform.Rule(t, "13-law worktrees", "worktrees inside the repo never enter a person's `git add -A`")
	s := newSandbox(t)
	s.write(".gitignore", "/ignored/\n")
	s.write("file.txt", "x\n")
	s.commit("files")
	list := filepath.Join(s.dir, ".git", "info", "exclude")
	check(t, os.MkdirAll(filepath.Dir(list), 0o755))
	check(t, os.WriteFile(list, []byte("*.mine"), 0o644)) // without an end of line
	r := s.open()
	for _, name := range []string{"wt", "deep/w [t]", "ignored/wt"} {
		_, err := r.AddWorktree(ctx(t), filepath.Join(s.dir, name), "b-"+strings.Map(func(c rune) rune {
			if c == '/' || c == ' ' || c == '[' || c == ']' {
				return '-'
			}
			return c
		}, name))
		check(t, err)
	}
	s.write("a.mine", "x\n")
	s.git("add", "-A")
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("git add -A took: %s", got)
	}
	data, err := os.ReadFile(list)
	check(t, err)
	if want := "*.mine\n/wt/\n/deep/w\\ \\[t\\]/\n"; string(data) != want {
		t.Errorf("%q, want %q", data, want)
	}
}

func TestLinked(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	if got, err := r.Linked(); len(got) > 0 || err != nil {
		t.Errorf("of a repo without: %q %v", got, err)
	}
	here, gone := s.beside("here"), s.beside("gone")
	for _, path := range []string{here, gone} {
		_, err := r.AddWorktree(ctx(t), path, filepath.Base(path))
		check(t, err)
	}
	check(t, os.RemoveAll(gone))
	real, err := filepath.EvalSymlinks(here)
	check(t, err)
	if got, err := r.Linked(); err != nil || !slices.Equal(got, []string{real}) {
		t.Errorf("%q %v, want %s", got, err, real)
	}
}

func TestAddWorktreeUsesWhatIsThere(t *testing.T) {
	conform.Rule(t, "1-language worktree", "one that is there is used as it is")
	s := newSandbox(t)
	r := s.open()
	there := s.beside("there")
	check(t, os.Mkdir(there, 0o755))
	if made, err := r.AddWorktree(ctx(t), there, "x"); made || err != nil {
		t.Errorf("%v %v", made, err)
	}
	if got := s.git("branch", "--list", "x"); got != "" {
		t.Error("a branch was made")
	}
}

func TestAddWorktreeRefuses(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	s.git("worktree", "add", "-q", "-b", "taken", s.beside("taken"))
	s.git("worktree", "add", "-q", "-b", "lost", s.beside("lost"))
	check(t, os.RemoveAll(s.beside("lost")))
	s.git("branch", "file")
	check(t, os.WriteFile(s.beside("file"), nil, 0o600))
	for _, c := range []struct{ path, branch, says string }{
		{"w1", "taken", "name another branch"},
		{"lost", "lost2", "git worktree prune"},
		{"w2", "file/below", "in the way"},
		{"w3", "-x", "not a valid name for a branch"},
		{"w4", "a..b", "not a valid name"},
		{"w5", "a\nb", "not a valid name"},
		{"w6", "", "not a valid name"},
		{"file", "x", "a file has this name"},
	} {
		made, err := r.AddWorktree(ctx(t), s.beside(c.path), c.branch)
		if made || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %q: %v %v", c.path, c.branch, made, err)
		}
	}
	if _, err := r.AddWorktree(ctx(t), "relative", "x"); err == nil {
		t.Error("a relative path went through")
	}
	if got := s.git("worktree", "list"); !strings.Contains(got, "lost") {
		t.Error("something was pruned")
	}
}

func TestChanged(t *testing.T) {
	s := newSandbox(t)
	s.write("kept.txt", "kept\n")
	s.write("gone.txt", "gone\n")
	s.write("mode.sh", "x\n")
	s.write("back.txt", "1\n")
	s.write("crlf.txt", "a\r\nb\r\n")
	s.write(".gitattributes", "*.txt text eol=crlf\n")
	s.write(".gitignore", "*.log\n")
	base := s.commit("base")
	r := s.open()
	expect := func(what string, want ...string) {
		t.Helper()
		got, err := r.Changed(ctx(t), s.dir, base)
		check(t, err)
		if !slices.Equal(got.Files, want) || got.Cut {
			t.Errorf("%s: %q, want %q", what, got.Files, want)
		}
	}
	expect("nothing")
	s.write("committed.txt", "x\n")
	s.write("back.txt", "2\n")
	s.commit("work")
	expect("committed", "back.txt", "committed.txt")
	s.write("back.txt", "1\n")
	s.git("commit", "-q", "-a", "-m", "back")
	expect("and back again", "committed.txt")
	s.write("a.txt", "two\n")
	check(t, os.Remove(filepath.Join(s.dir, "gone.txt")))
	check(t, os.Chmod(filepath.Join(s.dir, "mode.sh"), 0o755))
	s.write("new\nline.txt", "x")
	s.write("sub/ü.txt", "x")
	s.write("x.log", "ignored")
	want := []string{"a.txt", "committed.txt", "gone.txt", "mode.sh", "new\nline.txt", "sub/ü.txt"}
	expect("uncommitted", want...)
	s.git("add", "-A")
	expect("staged", want...)
	// An agent's flags in its own index do not count.
	s.git("update-index", "--assume-unchanged", "a.txt")
	s.git("update-index", "--skip-worktree", "mode.sh")
	expect("flagged", want...)
	s.git("reset", "-q", "--mixed", "HEAD")
	s.write("kept.txt", "tpek\n") // same size, in the same second
	expect("the same length", "a.txt", "committed.txt", "gone.txt", "kept.txt", "mode.sh", "new\nline.txt", "sub/ü.txt")
	got, err := r.Changed(ctx(t), s.dir, "")
	check(t, err)
	if slices.Contains(got.Files, "committed.txt") {
		t.Errorf("since HEAD: %q", got.Files)
	}
}

// TestUnclean: staged or changed files are listed, whoever touched them; untracked ones, merely
// touched ones, and those from a filter are not.
func TestUnclean(t *testing.T) {
	s := newSandbox(t)
	s.git("config", "filter.big.clean", "sed s/large/small/")
	s.git("config", "filter.big.smudge", "sed s/small/large/")
	s.write(".gitattributes", "*.big filter=big\n")
	for _, name := range []string{"kept.txt", "staged.txt", "changed.txt", "gone.txt", "known.txt"} {
		s.write(name, "one\n")
	}
	s.write("x.big", "large\n")
	s.commit("base")
	s.git("update-index", "--refresh")
	r := s.open()
	expect := func(what string, want ...string) {
		t.Helper()
		got, err := r.Unclean(ctx(t), s.dir, false)
		check(t, err)
		if !slices.Equal(got.Files, want) || got.Cut {
			t.Errorf("%s: %q, want %q", what, got.Files, want)
		}
	}
	long := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(filepath.Join(s.dir, "x.big"), long, long))
	s.git("update-index", "--refresh") // git has looked at it in a later second than it was written
	expect("nothing")
	check(t, os.Chtimes(filepath.Join(s.dir, "kept.txt"), long, long))
	s.write("unknown.txt", "x")
	expect("touched, and unknown")
	got, err := r.Unclean(ctx(t), s.dir, true)
	check(t, err)
	if want := []string{"unknown.txt"}; !slices.Equal(got.Files, want) {
		t.Errorf("uncommitted: %q, want %q", got.Files, want)
	}
	s.write("staged.txt", "two\n")
	s.write("added.txt", "x")
	s.git("add", "staged.txt", "added.txt")
	s.git("rm", "-q", "--cached", "known.txt")
	s.write("changed.txt", "two\n")
	check(t, os.Remove(filepath.Join(s.dir, "gone.txt")))
	expect("all", "added.txt", "changed.txt", "gone.txt", "known.txt", "staged.txt")
}

func TestChangedOfLinkedWorktree(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	base := s.git("rev-parse", "HEAD")
	path := s.beside("wt")
	_, err := r.AddWorktree(ctx(t), path, "wt")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(path, "new"), nil, 0o600))
	s.write("elsewhere", "")
	got, err := r.Changed(ctx(t), path, base)
	check(t, err)
	if !slices.Equal(got.Files, []string{"new"}) {
		t.Errorf("%q", got.Files)
	}
	if _, err := r.Changed(ctx(t), s.beside(""), base); !errors.Is(err, ErrNotWorktree) {
		t.Errorf("%v", err)
	}
	// The temporary folder was cleaned, and our index was cut short.
	check(t, os.WriteFile(r.privateIndex(path), []byte("DIRC"), 0o600))
	check(t, os.WriteFile(r.privateIndex(path)+".lock", nil, 0o600)) // from a killed git
	if got, err = r.Changed(ctx(t), path, base); err != nil || len(got.Files) != 1 {
		t.Errorf("%v %v", got, err)
	}
	check(t, os.RemoveAll(r.scratch))
	if got, err = r.Changed(ctx(t), path, base); err != nil || len(got.Files) != 1 {
		t.Errorf("%v %v", got, err)
	}
}

func TestChangedIsBounded(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	for i := range MaxChanged + 5 {
		if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("n%05d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Changed(ctx(t), s.dir, "")
	check(t, err)
	if len(got.Files) != MaxChanged || !got.Cut {
		t.Errorf("%d files, cut %v", len(got.Files), got.Cut)
	}
}

func TestDigest(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	files := []string{"a", "sub/b", "link", "none", "nested/"}
	seen := map[string]string{}
	last := ""
	digest := func(what string) string {
		t.Helper()
		d, err := Digest(ctx(t), dir, files)
		check(t, err)
		return d
	}
	differs := func(what string) {
		t.Helper()
		d := digest(what)
		if old, ok := seen[d]; ok {
			t.Errorf("%s: the same digest as %s", what, old)
		}
		seen[d], last = what, d
	}
	put("a", "1")
	put("sub/b", "2")
	put("nested/.git/HEAD", "x")
	put("nested/c", "3")
	check(t, os.Symlink("a", filepath.Join(dir, "link")))
	differs("first")
	slices.Reverse(files)
	files = append(files, "a")
	if digest("order") != last {
		t.Error("order or doubles count")
	}
	put("elsewhere", "x")
	put("nested/.git/HEAD", "y")
	if digest("elsewhere") != last {
		t.Error("a file that was not named counts")
	}
	put("a", "12")
	differs("content")
	put("sub/b", "")
	differs("emptied")
	check(t, os.Chmod(filepath.Join(dir, "a"), 0o700))
	differs("executable")
	check(t, os.Remove(filepath.Join(dir, "sub/b")))
	differs("removed")
	put("none", "")
	differs("appeared")
	check(t, os.Remove(filepath.Join(dir, "link")))
	put("link", "a")
	differs("a file for a link")
	check(t, os.Remove(filepath.Join(dir, "link")))
	check(t, os.Symlink("b", filepath.Join(dir, "link")))
	differs("another target")
	put("nested/c", "4")
	differs("in a folder")
	check(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "bus")))
	put("bus/b", "2")
	check(t, os.Symlink("bus", filepath.Join(dir, "sub")))
	differs("behind a link")
	for _, bad := range []string{"../x", "/etc/passwd", "a/../../x", ""} {
		if _, err := Digest(ctx(t), dir, []string{bad}); err == nil {
			t.Errorf("%q went through", bad)
		}
	}
}

// A digest of a sparse file larger than any disk stops when the time is over.
func TestDigestEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "big"))
	check(t, err)
	check(t, f.Truncate(1<<40))
	check(t, f.Close())
	c, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Digest(c, dir, []string{"big"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestDiff(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	base := s.git("rev-parse", "HEAD")
	s.write("b.txt", "b\n")
	s.commit("b")
	s.write("a.txt", "two\n")
	s.write("new \"file\".txt", "1\n2")
	s.write("bin", "a\x00b")
	s.write("empty", "")
	s.write("run.sh", "x\n")
	check(t, os.Chmod(filepath.Join(s.dir, "run.sh"), 0o755))
	check(t, os.Symlink("a.txt", filepath.Join(s.dir, "link")))
	text, cut, err := r.Diff(ctx(t), s.dir, base, 1<<20, Look{})
	check(t, err)
	for _, want := range []string{"-one\n+two\n", "+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n", "+a\x00b\n", "new file mode 100755", "new file mode 120000", "\n+1\n+2\n\\ No newline"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// Applying the patch produces the same files.
	s.git("worktree", "add", "-q", "--detach", s.beside("wt"), base)
	patch := s.beside("patch")
	check(t, os.WriteFile(patch, text, 0o600))
	s.gitIn(s.beside("wt"), "apply", patch)
	names := []string{"a.txt", "b.txt", "new \"file\".txt", "bin", "empty", "run.sh", "link"}
	one, err := Digest(ctx(t), s.dir, names)
	check(t, err)
	if two, err := Digest(ctx(t), s.beside("wt"), names); err != nil || one != two || cut {
		t.Errorf("the patch made other files: %v", err)
	}
	for _, limit := range []int64{0, 10, 200, int64(len(text)) - 1} {
		part, cut, err := r.Diff(ctx(t), s.dir, base, limit, Look{})
		if err != nil || !cut || int64(len(part)) > limit || !strings.HasPrefix(string(text), string(part)) {
			t.Errorf("limit %d: %d bytes, cut %v, %v", limit, len(part), cut, err)
		}
	}
	if part, cut, err := r.Diff(ctx(t), s.dir, base, int64(len(text)), Look{}); err != nil || cut || len(part) != len(text) {
		t.Errorf("all: %d bytes, cut %v, %v", len(part), cut, err)
	}
}

// TestDiffHidesNothing: no attribute in the work, no driver and no NUL hides a change from people
// and reviewers.
func TestDiffHidesNothing(t *testing.T) {
	conform.Rule(t, "9-one-tree diffs", "attributes, drivers and NULs of the work hide nothing of it")
	s := newSandbox(t)
	s.write("nul", "a\x00old\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "nul")
	base := s.git("rev-parse", "HEAD")
	s.git("config", "diff.evil.command", "true")
	s.git("config", "diff.evil.textconv", "true")
	s.git("config", "diff.external", "true")
	s.write(".git/info/attributes", "*.txt diff=evil\n")
	s.write(".gitattributes", "* -diff\n*.c binary\nnul diff=evil\n")
	s.write("a.txt", "hidden\n")
	s.write("new.c", "hidden as well\n")
	s.write("nul", "a\x00new\n")
	r := s.open()
	now, _, err := r.Diff(ctx(t), s.dir, base, 1<<20, Look{})
	check(t, err)
	s.commit("all")
	between, _, err := r.Between(ctx(t), base, s.git("rev-parse", "HEAD"), 1<<20, Look{})
	check(t, err)
	for name, text := range map[string]string{"in the folder": string(now), "between commits": string(between)} {
		for _, want := range []string{"+hidden\n", "+hidden as well\n", "-a\x00old\n+a\x00new\n", "+* -diff\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// TestLook: a patch shows the named files and folders alone, and no lines around a change.
func TestLook(t *testing.T) {
	s := newSandbox(t)
	s.write("src/a b.txt", "one\ntwo words here\nthree\n")
	s.write("srcs", "x\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "base")
	base := s.git("rev-parse", "HEAD")
	s.write("src/a b.txt", "one\ntwo other here\nthree\n")
	s.write("srcs", "y\n")
	s.write("src/new", "n m\n")
	s.write("*", "star\n")
	r := s.open()
	look := func(l Look) map[string]string {
		now, _, err := r.Diff(ctx(t), s.dir, base, 1<<20, l)
		check(t, err)
		return map[string]string{"in the folder": string(now)}
	}
	both := func(l Look) map[string]string {
		out := look(l)
		between, _, err := r.Between(ctx(t), base, s.git("rev-parse", "HEAD"), 1<<20, l)
		check(t, err)
		out["between commits"] = string(between)
		return out
	}
	holds := func(texts map[string]string, want, not []string) {
		t.Helper()
		for name, text := range texts {
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: no %q in\n%s", name, w, text)
				}
			}
			for _, w := range not {
				if strings.Contains(text, w) {
					t.Errorf("%s: %q in\n%s", name, w, text)
				}
			}
		}
	}
	holds(look(Look{Paths: []string{"src"}}), []string{"+two other", "+n m"}, []string{"srcs", "star"})
	holds(look(Look{Paths: []string{"*"}}), []string{"+star"}, []string{"src"})
	s.commit("all")
	holds(both(Look{Paths: []string{"src"}}), []string{"+two other", "+n m"}, []string{"srcs", "star"})
	holds(both(Look{Paths: []string{"*"}}), []string{"+star"}, []string{"src"})
	holds(both(Look{Bare: true}), []string{"@@ -2 +2 @@"}, []string{"\n one"})
}

// TestQuotedNames: a name is quoted as git does, and read back by those who show a patch.
func TestQuotedNames(t *testing.T) {
	s := newSandbox(t)
	for _, name := range []string{"plain name.go", "café.go", "a\tb", "a\"b", `a\b`, "a\\101", "\xff\xfe", "\x01\x7f\a\v\r\n1"} {
		s.write(name, "x\n")
		got, _, err := s.open().Diff(ctx(t), s.dir, "", 1<<20, Look{})
		check(t, err)
		lines := review.Lines(got)
		if at := lines[len(lines)-1].File; at != name {
			t.Errorf("%q is read back as %q from\n%s", name, at, got)
		}
		s.git("add", "-A")
		if got, want := quoted(name), strings.TrimSpace(s.git("ls-files", "--", ":(exclude)a.txt")); got != want {
			t.Errorf("%q: %s, git writes %s", name, got, want)
		}
		s.git("rm", "-q", "-f", "--", name)
	}
}

// TestPersonalSetting: the person's setting counts, and none of the repo, in whose folder it is read.
func TestPersonalSetting(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	s := newSandbox(t)
	s.git("config", "core.pager", "evil")
	t.Setenv("GIT_DIR", filepath.Join(s.dir, ".git"))
	t.Chdir(s.dir)
	if v, err := PersonalSetting(ctx(t), "core.pager"); v != "" || err != nil {
		t.Errorf("%q %v", v, err)
	}
	check(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tpager = delta --dark\n"), 0o600))
	if v, err := PersonalSetting(ctx(t), "core.pager"); v != "delta --dark" || err != nil {
		t.Errorf("%q %v", v, err)
	}
	check(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core\n"), 0o600))
	if v, err := PersonalSetting(ctx(t), "core.pager"); err == nil || !strings.Contains(err.Error(), "core.pager") {
		t.Errorf("%q %v", v, err)
	}
}

func TestSalvage(t *testing.T) {
	conform.Rule(t, "field ask 1", "an attempt's end state is kept at a ref")
	s := newSandbox(t)
	r := s.open()
	head := s.git("rev-parse", "HEAD")
	s.write("a.txt", "two\n")
	s.write("new/x.txt", "x\n")
	s.write("nested/y", "")
	s.gitIn(filepath.Join(s.dir, "nested"), "init", "-q")
	status := s.git("status", "--porcelain")
	sha, err := r.Salvage(ctx(t), s.dir, "run-1/X-1.1", "kept\n")
	check(t, err)
	if got := s.git("show", sha+":a.txt") + s.git("show", sha+":new/x.txt"); got != "twox" {
		t.Errorf("kept %q", got)
	}
	if s.git("rev-parse", sha+"^") != head || s.git("rev-parse", "refs/sluice/salvage/run-1/X-1.1") != sha {
		t.Error("not on top of HEAD, or not on its ref")
	}
	if s.git("rev-parse", "HEAD") != head || s.git("status", "--porcelain") != status {
		t.Error("the worktree was changed")
	}
	check(t, os.Remove(filepath.Join(s.dir, "a.txt")))
	sha, err = r.Salvage(ctx(t), s.dir, "run-1/X-1.1", "again\n")
	check(t, err)
	if got := s.git("ls-tree", "--name-only", sha); strings.Contains(got, "a.txt") {
		t.Errorf("kept what was removed: %s", got)
	}
	for _, bad := range []string{"../x", "a..b", "x.lock", ""} {
		if _, err := r.Salvage(ctx(t), s.dir, bad, ""); err == nil {
			t.Errorf("%q went through", bad)
		}
	}
}

// A salvage leaves our index as it found it: the next look starts no git for it, and a file that is ignored meanwhile is
// not taken.
func TestSalvageKeepsTheIndex(t *testing.T) {
	s := newSandbox(t)
	s.write("a.txt", "one\n")
	s.commit("one")
	r := s.open()
	head := s.git("rev-parse", "HEAD")
	check(t, afterSecond(ctx(t), time.Now())) // the state of a file as new as its entry is not kept
	tree, err := r.FolderTree(ctx(t), s.dir, head, nil)
	check(t, err)
	gits := func(most int64, do func() error) {
		t.Helper()
		before := r.Started()
		if err := do(); err != nil || r.Started()-before > most {
			t.Errorf("%d gits, at most %d: %v", r.Started()-before, most, err)
		}
	}
	salvage := func() error {
		_, err := r.Salvage(ctx(t), s.dir, "run-1/X-1.1", "kept\n")
		return err
	}
	look := func() error {
		got, err := r.FolderTree(ctx(t), s.dir, head, nil)
		if err == nil && got != tree {
			err = fmt.Errorf("the tree is %s", s.git("ls-tree", "-r", got))
		}
		return err
	}
	gits(2, look)    // add, and rev-parse for the tree of HEAD, once
	gits(3, salvage) // add, ls-files, commit-tree
	gits(1, look)
	s.write("new.log", "x\n")
	gits(5, salvage) // and update-index, write-tree
	s.write(".git/info/exclude", "*.log\n")
	gits(1, look)
}

// What a sparse checkout leaves out is not removed.
func TestSalvageOfASparseCheckout(t *testing.T) {
	s := newSandbox(t)
	s.write("in/a", "one\n")
	s.write("out/b", "one\n")
	s.commit("two folders")
	s.git("sparse-checkout", "set", "in")
	s.write("in/a", "two\n")
	r := s.open()
	sha, err := r.Salvage(ctx(t), s.dir, "run-1/X-1.1", "kept\n")
	check(t, err)
	if got := s.git("show", sha+":in/a") + s.git("show", sha+":out/b"); got != "twoone" {
		t.Errorf("kept %q", got)
	}
	if c, err := r.Changed(ctx(t), s.dir, ""); err != nil || !slices.Equal(c.Files, []string{"in/a"}) {
		t.Error(c, err)
	}
}

// TestFailedComparisonFreesTheIndex: HEAD's tree is gone, and then back.
func TestFailedComparisonFreesTheIndex(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	tree := s.git("rev-parse", "HEAD^{tree}")
	object := filepath.Join(s.dir, ".git", "objects", tree[:2], tree[2:])
	check(t, os.Rename(object, object+".away"))
	if _, err := r.Changed(ctx(t), s.dir, ""); err == nil {
		t.Fatal("compared with a tree that is not there")
	}
	check(t, os.Rename(object+".away", object))
	within, cancel := context.WithTimeout(ctx(t), time.Minute)
	defer cancel()
	if _, err := r.Changed(within, s.dir, ""); err != nil {
		t.Error(err)
	}
}

func TestToplevel(t *testing.T) {
	s := newSandbox(t)
	s.write("sub/x", "")
	s.git("worktree", "add", "-q", "-b", "wt", filepath.Join(s.dir, "wt"))
	check(t, os.MkdirAll(filepath.Join(s.dir, "sub", ".git"), 0o755)) // this makes no checkout
	check(t, os.Symlink(filepath.Join(s.dir, "sub"), s.beside("link")))
	for path, want := range map[string]string{
		s.dir: s.dir, filepath.Join(s.dir, "sub"): s.dir, s.beside("link"): s.dir,
		filepath.Join(s.dir, "wt"): filepath.Join(s.dir, "wt"),
	} {
		if got, err := Toplevel(path); err != nil || got != want {
			t.Errorf("%s: %s %v", path, got, err)
		}
	}
}

func TestRepoID(t *testing.T) {
	conform.Rule(t, "2-files state folder", "a repo's id")
	s := newSandbox(t)
	check(t, os.Rename(s.dir, s.beside("my repö")))
	s.dir = s.beside("my repö")
	common, err := CommonDir(s.dir)
	check(t, err)
	id := RepoID(common)
	if !regexp.MustCompile(`^my_rep_-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("%q", id)
	}
	check(t, os.Symlink(s.dir, s.beside("link")))
	if again, err := CommonDir(s.beside("link")); err != nil || again != common {
		t.Errorf("by a link: %q %v", again, err)
	}
	s.git("worktree", "add", "-q", "--detach", s.beside("linked"))
	s.git("init", "-q", "--separate-git-dir", s.beside("elsewhere"), s.beside("apart"))
	for top, want := range map[string]string{"linked": common, "apart": s.beside("elsewhere")} {
		if got, err := CommonDir(s.beside(top)); err != nil || got != want {
			t.Errorf("of %s: %q %v, want %s", top, got, err, want)
		}
	}
	for in, want := range map[string]string{"": "repo", "..": "repo", "-x": "x", "a/b\nc": "a_b_c", strings.Repeat("x", 300): strings.Repeat("x", maxNameBytes)} {
		if got := saneName(in); got != want {
			t.Errorf("saneName(%q) = %q", in, got)
		}
	}
}

func TestLsRemotePulls(t *testing.T) {
	s := newSandbox(t)
	bare := s.beside("forge.git")
	s.git("clone", "-q", "--bare", s.dir, bare)
	head := s.git("rev-parse", "HEAD")
	for _, ref := range []string{"refs/pull/7/head", "refs/pull/7/merge", "refs/merge-requests/12/head", "refs/heads/x", "refs/heads/refs/pull/9/head", "refs/pull/8/x/head"} {
		s.gitIn(bare, "update-ref", ref, head)
	}
	s.git("remote", "add", "origin", bare)
	r := s.open()
	t.Setenv("HOME", t.TempDir())
	url, err := r.RemoteURL(ctx(t), "origin")
	check(t, err)
	for _, u := range []string{url, "file://" + bare} {
		refs, err := r.LsRemotePulls(ctx(t), u)
		check(t, err)
		if len(refs) != 2 || refs["refs/pull/7/head"] != head || refs["refs/merge-requests/12/head"] != head {
			t.Errorf("%s: %v", u, refs)
		}
	}
	if _, err := r.LsRemotePulls(ctx(t), s.beside("none")); err == nil {
		t.Error("a remote that is not there is no error")
	}
	if url, err := r.RemoteURL(ctx(t), "none"); err != nil || url != "" {
		t.Errorf("%q %v", url, err)
	}
}

func TestAddressesRefused(t *testing.T) {
	r := newSandbox(t).open()
	for _, u := range []string{
		"", "-x", "--upload-pack=touch x", "ext::sh -c touch% x", "ext::x", "http://x/y", "git://x/y", "ftp://x/y", "relative/path", "../x",
		"ssh://-oProxyCommand=x/y", "-oProxyCommand=x:y", "a@-ox:y", "https://x/a b", "ssh://-x@h/y", "fd::17", "https://x\n/y", "x", ":y", strings.Repeat("/x", maxURLBytes),
	} {
		if _, err := r.LsRemotePulls(ctx(t), u); !errors.Is(err, ErrURL) {
			t.Errorf("%.80q: %v", u, err)
		}
	}
	for u, want := range map[string]string{"https://h/x": "https", "ssh://g@h:22/x": "ssh", "git@h:o/x.git": "ssh", "file:///x": "file", "/x": "file", "h:x": "ssh"} {
		if got, err := checkURL(u); err != nil || got != want {
			t.Errorf("%s: %q %v", u, got, err)
		}
	}
	if s := ShownURL("https://u:secret@h/x"); strings.Contains(s, "secret") {
		t.Errorf("%s", s)
	}
}

func TestLimits(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	c := call{args: []string{"for-each-ref"}, limit: 10, timeout: callTime}
	if _, err := r.inRepo(ctx(t), r.common, r.top, c); !errors.Is(err, ErrOutput) {
		t.Errorf("output: %v", err)
	}
	// One that waits forever for its input.
	pr, pw, err := os.Pipe()
	check(t, err)
	defer func() { check(t, errors.Join(pr.Close(), pw.Close())) }()
	c = call{args: []string{"cat-file", "--batch"}, stdin: pr, limit: smallOutput, timeout: 50 * time.Millisecond}
	start := time.Now()
	if _, err := r.shadow(ctx(t), c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("time: %v", err)
	}
	c.timeout = time.Minute
	cc, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := r.shadow(cc, c); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if time.Since(start) > 10*time.Second {
		t.Errorf("took %s", time.Since(start))
	}
	defer func() {
		if recover() == nil {
			t.Error("a subcommand that is not allowed ran")
		}
	}()
	_, err = r.run(ctx(t), call{args: []string{"status"}, limit: 1, timeout: time.Second})
	t.Error(err)
}

// twoCommits commits a.txt twice, with one and with two.
func (s *sandbox) twoCommits() (from, to string) {
	s.write("a.txt", "one\n")
	from = s.commit("one")
	s.write("a.txt", "two\n")
	return from, s.commit("two")
}

// TestForgetLeavesWhatIsInUse: a run that ends takes nothing from another's files that are being
// written, and an index that is gone all the same is no empty one.
func TestForgetLeavesWhatIsInUse(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	from, to := s.twoCommits()
	changes, err := r.ChangesBetween(ctx(t), from, to)
	check(t, err)
	s.write("a.txt", "one\n")
	l, err := r.list(ctx(t), s.dir, changes, false)
	check(t, err)
	write := func() error {
		_, err := l.git(ctx(t), "", "checkout-index", "--all", "--force", "--quiet")
		return err
	}
	check(t, r.Forget())
	check(t, write())
	if got, err := os.ReadFile(filepath.Join(s.dir, "a.txt")); err != nil || string(got) != "two\n" {
		t.Errorf("it has %q, %v", got, err)
	}
	check(t, l.remove())
	if err := write(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its index: %v", err)
	}
	check(t, os.WriteFile(l.file, nil, 0o600)) // as a killed process leaves one
	check(t, r.makeShadow(ctx(t)))
	if _, err := os.Lstat(l.file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// TestForget: what is kept of a worktree is removed with it; so is an unused lock.
func TestForget(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	indexes := func() int {
		entries, err := os.ReadDir(filepath.Join(r.scratch, indexName))
		check(t, err)
		return len(entries)
	}
	look := func(dir string) {
		_, err := r.Changed(ctx(t), dir, "")
		check(t, err)
	}
	look(s.dir)
	for i := range 3 {
		path := s.beside(fmt.Sprintf("wt%d", i))
		_, err := r.AddWorktree(ctx(t), path, fmt.Sprintf("b%d", i))
		check(t, err)
		look(path)
	}
	if len(r.locks.of) > 0 {
		t.Errorf("%d locks that nobody holds", len(r.locks.of))
	}
	s.git("worktree", "remove", s.beside("wt0"))
	check(t, os.RemoveAll(s.beside("wt1"))) // git does not know it yet
	unlock, err := r.locks.Lock(ctx(t), s.beside("wt1"))
	check(t, err)
	check(t, r.Forget())
	if got := indexes(); got != 3 {
		t.Errorf("%d indexes, want those of the repo, of wt2, and of wt1, which is in use", got)
	}
	late, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := r.locks.Lock(late, s.beside("wt1")); err == nil {
		t.Error("two hold one lock")
	}
	unlock()
	check(t, r.Forget())
	if got := indexes(); got != 2 || len(r.locks.of) > 0 {
		t.Errorf("%d indexes, %d locks", got, len(r.locks.of))
	}
	look(s.dir)
	look(s.beside("wt2"))
}

// TestScratchIsMadeWhenNeeded: opening a repo briefly leaves nothing, even after a kill; others'
// leftovers are removed.
func TestScratchIsMadeWhenNeeded(t *testing.T) {
	s := newSandbox(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	left := func() int {
		entries, err := os.ReadDir(tmp)
		check(t, err)
		return len(entries)
	}
	r, err := Open(ctx(t), s.dir)
	check(t, err)
	_, err = r.Worktrees(ctx(t))
	check(t, err)
	check(t, r.Forget())
	if left() != 0 {
		t.Errorf("%d things were made for nobody", left())
	}
	_, err = r.Changed(ctx(t), s.dir, "")
	check(t, err)
	if left() != 1 {
		t.Errorf("%d folders", left())
	}
	check(t, r.Close())
	for _, name := range []string{"sluice-git-old", "sluice-git-young", "another-old"} {
		check(t, os.MkdirAll(filepath.Join(tmp, name, "x"), 0o700))
	}
	check(t, os.WriteFile(filepath.Join(tmp, "sluice-git-file"), nil, 0o600))
	check(t, os.Symlink(s.dir, filepath.Join(tmp, "sluice-git-link")))
	day := time.Now().Add(-25 * time.Hour)
	check(t, os.Chtimes(filepath.Join(tmp, "sluice-git-old"), day, day))
	check(t, os.Chtimes(filepath.Join(tmp, "another-old"), day, day))
	check(t, SweepScratch("", time.Now()))
	if _, err := os.Lstat(filepath.Join(tmp, "sluice-git-old")); err == nil || left() != 4 {
		t.Errorf("%v, %d left", err, left())
	}
}

// TestChangesAreKept: a list that is asked for again is the same, whatever its reader did with it.
func TestChangesAreKept(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	from, to := s.twoCommits()
	for range 2 {
		changes, err := r.ChangesBetween(ctx(t), from, to)
		check(t, err)
		if len(changes) != 1 || changes[0].Path != "a.txt" {
			t.Fatalf("changes: %v", changes)
		}
		changes[0].Path = "b.txt"
	}
	if back, err := r.ChangesBetween(ctx(t), to, from); err != nil || len(back) != 1 || back[0].Added() || back[0].Deleted() {
		t.Errorf("back: %v, %v", back, err)
	}
}

// A large index of version 4, as feature.manyFiles makes them, is read too.
func TestFolderOfALargeIndexVersion4(t *testing.T) {
	s := newSandbox(t)
	blob := s.git("rev-parse", "HEAD:a.txt")
	entries := filepath.Join(t.TempDir(), "entries")
	var list strings.Builder
	for i := range maxSeedCheap / 50 {
		fmt.Fprintf(&list, "100644 %s\tmany/%d\n", blob, i)
	}
	check(t, os.WriteFile(entries, []byte(list.String()), 0o600))
	s.git("update-index", "--index-version", "4")
	if out, err := exec.Command("sh", "-c", `git -C "$1" update-index --index-info <"$2"`, "sh", s.dir, entries).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	s.git("commit", "-q", "-m", "many")
	s.write("a.txt", "two\n")
	r := s.open()
	tree, err := r.FolderTree(ctx(t), s.dir, s.git("rev-parse", "HEAD"), nil)
	check(t, err)
	if got := s.git("ls-tree", "-r", "--name-only", tree) + s.git("show", tree+":a.txt"); got != "a.txttwo" {
		t.Errorf("%.200q", got)
	}
}
