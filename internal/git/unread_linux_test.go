package git

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// failsToOpen makes each git of this test that runs a subcommand fail to open a file the nth time,
// and reports whether one did.
func failsToOpen(t *testing.T, sub, file string, nth int) (hit func() bool) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs: strace (apt-get install strace)")
	}
	real, err := exec.LookPath("git")
	check(t, err)
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' %s '*) exec %s -f -qq -o %s -P '%s' -e trace=openat -e inject=openat:error=EIO:when=%d %s \"$@\";; esac\nexec %s \"$@\"\n",
		sub, strace, trace, file, nth, real, real)
	check(t, os.WriteFile(filepath.Join(dir, "git"), []byte(text), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() bool {
		data, _ := os.ReadFile(trace)
		return strings.Contains(string(data), "(INJECTED)")
	}
}

// TestGitThatCouldNotRead: after a disk error git silently skips refs, HEADs and worktrees, and
// exits with 0. We must report what exists, or an error, but never that it does not exist.
func TestGitThatCouldNotRead(t *testing.T) {
	s := newSandbox(t)
	s.git("worktree", "add", "-q", "-b", "side", s.beside("side"))
	s.git("worktree", "add", "-q", "--detach", s.beside("loose"))
	s.git("pack-refs", "--all", "--no-prune")
	s.commit("packed and loose")
	trees, err := s.open().Worktrees(ctx(t))
	check(t, err)
	for _, file := range []string{"HEAD", "refs/heads/main", "refs/heads/side", "worktrees", "worktrees/side/HEAD", "worktrees/side/gitdir",
		"worktrees/side/commondir", "worktrees/loose/HEAD"} {
		hits := 0
		for nth := 1; nth < 10 && hits == nth-1; nth++ {
			t.Run(fmt.Sprintf("%s,%d", strings.ReplaceAll(file, "/", "-"), nth), func(t *testing.T) {
				hit := failsToOpen(t, "worktree list", filepath.Join(s.dir, ".git", file), nth)
				r, err := Open(ctx(t), s.dir)
				check(t, err)
				defer r.Close()
				got, err := r.Worktrees(ctx(t))
				if err == nil && !slices.Equal(got, trees) {
					t.Errorf("it has\n%+v\nand not\n%+v", got, trees)
				}
				if hit() {
					hits++
				}
			})
		}
		if hits == 0 {
			t.Errorf("git does not open %s", file)
		}
	}
}

// TestRefsThatCouldNotBeRead is the same for the refs: an unlisted commit would count as new, or as
// nobody's.
func TestRefsThatCouldNotBeRead(t *testing.T) {
	s := newSandbox(t)
	s.git("branch", "packed")
	s.git("tag", "-a", "-m", "t", "v1")
	s.git("update-ref", "refs/sluice/salvage/w-1/A.1", "HEAD")
	s.git("pack-refs", "--all", "--no-prune")
	s.commit("packed and loose")
	s.git("branch", "dir/loose")
	s.git("update-ref", "refs/sluice/salvage/w-1/A.2", "HEAD")
	r := s.open()
	refs, err := r.Refs(ctx(t))
	check(t, err)
	kept, err := r.OwnBelow(ctx(t), "salvage", "w-1")
	check(t, err)
	if len(refs) != 5 || len(kept) != 2 {
		t.Fatalf("%v\n%v", refs, kept)
	}
	for _, file := range []string{"packed-refs", "refs", "refs/heads", "refs/heads/main", "refs/heads/dir", "refs/heads/dir/loose",
		"refs/sluice/salvage/w-1", "refs/sluice/salvage/w-1/A.2"} {
		t.Run(strings.ReplaceAll(file, "/", "-"), func(t *testing.T) {
			failsToOpen(t, "for-each-ref", filepath.Join(s.dir, ".git", file), 1)
			r, err := Open(ctx(t), s.dir)
			check(t, err)
			defer r.Close()
			if got, err := r.Refs(ctx(t)); err == nil && !maps.Equal(got, refs) {
				t.Errorf("it has\n%v\nand not\n%v", got, refs)
			}
			if got, err := r.OwnBelow(ctx(t), "salvage", "w-1"); err == nil && !maps.Equal(got, kept) {
				t.Errorf("it has\n%v\nand not\n%v", got, kept)
			}
		})
	}
}

// TestTipOf: the same result as git's, but without git, which returns an old value or none if it
// cannot read; a broken ref is not a missing one.
func TestTipOf(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	sha := s.git("rev-parse", "HEAD")
	for _, name := range []string{"packed", "dir/below"} {
		s.git("update-ref", "refs/heads/"+name, sha)
	}
	s.git("tag", "-a", "-m", "t", "v1")
	s.git("update-ref", "refs/sluice/tip/w-1/A.1", sha)
	s.git("pack-refs", "--all")
	check(t, os.MkdirAll(filepath.Join(s.dir, ".git/refs/heads/packed"), 0o755))
	for name, text := range map[string]string{"gone": strings.Repeat("1", 40) + "\n", "dangling": "ref: refs/heads/nothing\n",
		"one": "ref: refs/heads/two\n", "two": "ref: refs/heads/packed\n", "loop": "ref: refs/heads/loop\n", "empty": ""} {
		s.write(".git/refs/heads/"+name, text)
	}
	check(t, os.Symlink("main", filepath.Join(s.dir, ".git/refs/heads/linked")))
	s.git("update-ref", "refs/heads/main", sha)
	for _, name := range []string{"heads/main", "heads/packed", "heads/dir", "heads/dir/below", "heads/main/below", "heads/none", "heads/gone",
		"heads/dangling", "heads/one", "heads/two", "heads/linked", "tags/v1", "sluice/tip/w-1/A.1"} {
		want, err := r.askTip(ctx(t), "refs/"+name)
		check(t, err)
		if got, err := r.TipOf(ctx(t), "refs/"+name); err != nil || got != want {
			t.Errorf("%s: %+v %v, git has %+v", name, got, err, want)
		}
	}
	started := r.Started()
	for name, words := range map[string]string{"empty": "names no commit", "loop": "symbolic refs"} {
		if tip, err := r.TipOf(ctx(t), "refs/heads/"+name); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %+v %v", name, tip, err)
		}
	}
	if tip, err := r.TipOf(ctx(t), "refs/heads/main"); err != nil || tip.SHA != sha || r.Started() != started {
		t.Errorf("%+v %v, and %d gits", tip, err, r.Started()-started)
	}
}
