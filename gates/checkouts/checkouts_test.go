//go:build linux

package checkouts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/git"
	"sluice/tools/conform"
)

// ground is a repo, and checkouts of it.
type ground struct {
	t    *testing.T
	root string
	dir  string
	repo *git.Repo
	c    *Checkouts
}

func newGround(t *testing.T) *ground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, root: filepath.Join(root, "repo"), dir: filepath.Join(root, "judge")}
	if err := os.Mkdir(g.root, 0o755); err != nil {
		t.Fatal(err)
	}
	g.sh("git init -q -b main . && git config user.name T && git config user.email t@example.org")
	g.repo, err = git.OpenWith(t.Context(), g.root, git.Options{Scratch: filepath.Join(root, "scratch")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.repo.Close() })
	g.c = g.checkouts("one")
	return g
}

func (g *ground) checkouts(start string) *Checkouts {
	return New(Options{Dir: g.dir, Repo: g.repo, Start: start})
}

// sh runs a script in the repo and returns its output.
func (g *ground) sh(script string) string {
	g.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = g.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "TOP="+filepath.Join(g.dir, "1", treeName))
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits what a script creates.
func (g *ground) commit(script string) string {
	g.t.Helper()
	g.sh(script + "\ngit add -A && git commit -q --allow-empty -m work")
	return g.sh("git rev-parse HEAD")
}

func (g *ground) at(commit, user string) *Checkout {
	g.t.Helper()
	co, err := g.c.At(g.t.Context(), commit, user)
	if err != nil {
		g.t.Fatal(err)
	}
	return co
}

func (g *ground) release(user string) {
	g.t.Helper()
	if err := g.c.Release(user); err != nil {
		g.t.Fatal(err)
	}
}

// whole compares a checkout with git's own checkout of the commit.
func (g *ground) whole(co *Checkout) {
	g.t.Helper()
	fresh := filepath.Join(g.t.TempDir(), "fresh")
	g.sh(fmt.Sprintf("git worktree add -q --detach --force %s %s", fresh, co.Commit))
	defer g.sh("git worktree remove --force " + fresh)
	want, got := listing(g.t, fresh), listing(g.t, co.Top)
	if !slices.Equal(got, want) {
		g.t.Errorf("the checkout of %.8s has\n%s\nwant\n%s", co.Commit, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// listing returns each name below a folder, except git's, with its kind, mode and content hash.
func listing(t *testing.T, top string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, p)
		if rel == gitName {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			data = []byte(to)
		case d.Type().IsRegular():
			if data, err = os.ReadFile(p); err != nil {
				return err
			}
		}
		out = append(out, fmt.Sprintf("%s %s %x", rel, info.Mode(), sha256.Sum256(data)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const firstFiles = `mkdir -p src/deep; echo one >src/a.py; echo two >src/deep/b.py; echo three >c.txt; ln -s c.txt link; echo '#!/bin/sh' >run; chmod +x run
echo 'ignored/' >.gitignore; echo '*.crlf text eol=crlf' >.gitattributes; printf 'a\nb\n' >x.crlf`

// TestUpdate: the checkout is always the requested commit, and unchanged files are kept.
func TestUpdate(t *testing.T) {
	g := newGround(t)
	first := g.commit(firstFiles)
	second := g.commit(`git rm -q -r src/deep; mkdir run2; git mv run run2/run; rm link; mkdir link; echo file >link/file; echo new >c.txt; ln -s nowhere dangling; chmod +x src/a.py`)
	third := g.commit(`echo '*.crlf -text' >.gitattributes; printf 'a\nb\nc\n' >y.crlf`)
	number := func() uint64 {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(g.dir, "1", treeName, ".gitignore"), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	var before uint64
	for i, commit := range []string{first, second, first, second, third, second} {
		g.whole(g.at(commit, "a"))
		g.release("a")
		if n := number(); i == 0 {
			before = n
		} else if i < 4 && n != before {
			t.Errorf("update %d wrote a file anew that did not change", i)
		}
	}
	if n, _ := filepath.Glob(filepath.Join(g.dir, "*")); len(n) != 1 {
		t.Errorf("it kept %v, want one checkout", n)
	}
	if got := g.sh("git status --porcelain; git worktree list | wc -l"); got != "1" {
		t.Errorf("the repo was changed: %s", got)
	}
}

// leftBehind are changes that a judge, or what it ran, may leave in its checkout.
var leftBehind = map[string]string{
	"changed, time put back":  `touch -r src/a.py /tmp/$$; printf 'ONE\n' >src/a.py; touch -r /tmp/$$ src/a.py; rm /tmp/$$`,
	"replaced, time put back": `touch -r src/a.py /tmp/$$; printf 'ONE\n' >new; touch -r /tmp/$$ new; mv new src/a.py; rm /tmp/$$`,
	"ignored module":          `mkdir -p ignored src/__pycache__; echo evil >ignored/x.py; echo evil >src/__pycache__/a.pyc`,
	"hidden by its own list":  `mkdir fake; echo '*' >fake/.gitignore; echo evil >fake/mod.py`,
	"removed":                 `rm -r src`,
	"mode":                    `chmod 0777 src run c.txt; chmod u+s run`,
	"unreadable":              `mkdir -p shut/in/deep; echo x >shut/in/deep/f; chmod 000 shut/in shut src/deep src/a.py`,
	"folder for file":         `rm c.txt; mkdir c.txt; echo x >c.txt/x`,
	"file for folder":         `rm -r src; echo x >src`,
	"link for folder":         `mv src other; ln -s other src`,
	"link out":                `rm -r src; mkdir -p /tmp/judge-out-$$/deep; ln -s /tmp/judge-out-$$ src; rmdir /tmp/judge-out-$$/deep /tmp/judge-out-$$`,
	"link for file":           `rm c.txt; ln -s /etc/passwd c.txt`,
	"hard link":               `ln c.txt src/hard`,
	"pipe":                    `mkfifo src/pipe; rm c.txt; mkfifo c.txt`,
	"very long path":          `d=$(printf 'x%.0s' $(seq 200)); p=.; for i in $(seq 18); do p=$p/$d; done; mkdir -p one/$p two/$p; echo x >two/$p/file; mv two one/$p/`,
	"a git of its own":        `git init -q .; git config core.fsmonitor /bin/false; git init -q inner`,
	"odd names":               `touch "$(printf 'a\nb')" -- "-rf" " " "$(printf '\377')"`,
	"no checkout any more":    `cd ..; rm -rf tree; ln -s /tmp tree`,
	"attributes":              `echo '* -text' >.gitattributes; echo '* ident' >src/.gitattributes`,
}

// TestWhatAJudgeLeaves: none of it reaches the next user.
func TestWhatAJudgeLeaves(t *testing.T) {
	conform.Rule(t, "9-one-tree throw-away", "what a judge writes into its checkout is gone for the next one")
	for name, script := range leftBehind {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			commit := g.commit(firstFiles)
			g.at(commit, "a")
			g.sh("cd $TOP\n" + script)
			if name == "no checkout any more" {
				defer os.Remove(filepath.Join(g.dir, "1", treeName))
			}
			g.release("a")
			co := g.at(commit, "b")
			g.whole(co)
			if left, _ := os.ReadDir(filepath.Join(g.dir, "1", trashName)); len(left) > 0 {
				t.Errorf("the trash has %v", left)
			}
		})
	}
}

// TestMarksOfAFolder: a folder's access list is not passed on.
func TestMarksOfAFolder(t *testing.T) {
	for _, dir := range []string{"src", "."} {
		g := newGround(t)
		commit := g.commit(firstFiles)
		co := g.at(commit, "a")
		if err := unix.Setxattr(filepath.Join(co.Top, dir), "user.mark", []byte("x"), 0); err != nil {
			t.Skipf("needs: extended attributes: %v", err)
		}
		co = g.at(commit, "a")
		if n, err := unix.Listxattr(filepath.Join(co.Top, dir), nil); err != nil || n != 0 {
			t.Errorf("%s: %d bytes of marks are left, %v", dir, n, err)
		}
		g.whole(co)
	}
}

// TestAfterACrash: a checkout from a killed update, or from before a reboot, is repaired.
func TestAfterACrash(t *testing.T) {
	conform.Rule(t, "9-one-tree crash", "a half-updated checkout is found and repaired")
	for name, script := range map[string]string{
		"half of the next commit": `cd $TOP; printf 'next\n' >c.txt; rm -r src`,
		"index and lock":          `echo half >$TOP/../index; touch $TOP/../index.lock`,
		"no index":                `rm $TOP/../index`,
		"half a manifest":         `truncate -s -30 $TOP/../manifest`,
		"no manifest":             `rm $TOP/../manifest; echo evil >$TOP/c.txt`,
		"trash":                   `mkdir -p $TOP/../trash/a/b/c; chmod 0 $TOP/../trash/a/b`,
	} {
		g := newGround(t)
		commit := g.commit(firstFiles)
		g.at(commit, "a")
		g.sh(script)
		g.c = g.checkouts("one")
		co := g.at(commit, "b")
		g.whole(co)
		if err := co.Git(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
	// What was not synced may be lost although the file's state is unchanged.
	g := newGround(t)
	commit := g.commit(firstFiles)
	co := g.at(commit, "a")
	old, err := os.Open(filepath.Join(co.Top, "c.txt")) // kept open, so that no new file gets its inode
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	before, err := old.Stat()
	if err != nil {
		t.Fatal(err)
	}
	g.c = g.checkouts("two")
	co = g.at(commit, "a")
	if after, err := os.Lstat(filepath.Join(co.Top, "c.txt")); err != nil || os.SameFile(before, after) {
		t.Errorf("a file of before the start was believed: %v", err)
	}
	g.whole(co)
}

// TestUsers: one user has one checkout, and no two share one, even after a restart.
func TestUsers(t *testing.T) {
	g := newGround(t)
	commit := g.commit(firstFiles)
	a, b := g.at(commit, "a"), g.at(commit, "b")
	if a.Top == b.Top {
		t.Fatal("two users have one checkout")
	}
	if again := g.at(commit, "a"); again.Top != a.Top {
		t.Error("a user has two checkouts")
	}
	over := map[string]bool{}
	g.c = New(Options{Dir: g.dir, Repo: g.repo, Start: "one", Over: func(user string, here bool) bool { return !here && over[user] }})
	if c := g.at(commit, "c"); c.Top == a.Top || c.Top == b.Top {
		t.Error("after a restart a user got the checkout of another one that is at work")
	}
	over["b"] = true
	if d := g.at(commit, "d"); d.Top != b.Top {
		t.Error("the checkout of a user that is over is not used again")
	}
	var all sync.WaitGroup
	for i := range 2 * keep {
		all.Go(func() {
			user := fmt.Sprintf("many-%d", i)
			co, err := g.c.At(t.Context(), commit, user)
			if err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(filepath.Join(co.Top, "mine"), []byte(user), 0o600); err != nil {
				t.Error(err)
			}
			if data, err := os.ReadFile(filepath.Join(co.Top, "mine")); string(data) != user {
				t.Errorf("%s sees %q %v", user, data, err)
			}
			if err := g.c.Release(user); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, user := range []string{"a", "c", "d"} {
		g.release(user)
	}
	if n, _ := os.ReadDir(g.dir); len(n) > keep {
		t.Errorf("%d checkouts are kept, want at most %d", len(n), keep)
	}
}

// TestGitFolder: git works in the checkout and reports it as clean.
func TestGitFolder(t *testing.T) {
	g := newGround(t)
	g.commit(firstFiles)
	g.sh("git config core.fsmonitor /bin/false; git config alias.x '!false'; git tag old")
	commit := g.commit("echo more >c.txt")
	stores, err := g.repo.Stores()
	if err != nil {
		t.Fatal(err)
	}
	co := g.at(commit, "a")
	for range 2 {
		if err := co.Git(t.Context(), stores); err != nil {
			t.Fatal(err)
		}
		if got := g.sh("cd $TOP; git status --porcelain; git rev-parse HEAD; git diff --stat old | tail -1; git log --oneline main | wc -l; git config --list"); !strings.Contains(got, commit+"\n 1 file changed") || strings.Contains(got, "fsmonitor") || strings.Contains(got, "alias") {
			t.Error(got)
		}
		g.sh("cd $TOP; git -c user.name=x -c user.email=x commit -q --allow-empty -m inside; git update-ref -d refs/heads/main")
		co = g.at(commit, "a")
	}
	if got := g.sh("git rev-parse main"); got != commit {
		t.Errorf("main is %s, want %s", got, commit)
	}
}

// TestRefusals: an invalid commit is an error and leaves no user behind.
func TestRefusals(t *testing.T) {
	g := newGround(t)
	commit := g.commit(firstFiles)
	for _, bad := range []string{"", "main", "-x", strings.Repeat("0", 40)} {
		if _, err := g.c.At(t.Context(), bad, "a"); err == nil {
			t.Errorf("%q gave a checkout", bad)
		}
	}
	if _, err := g.c.At(t.Context(), commit, ""); err == nil {
		t.Error("no user gave a checkout")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.c.At(ctx, commit, "a"); err == nil {
		t.Error("a context that is over gave a checkout")
	}
	if co := g.at(commit, "b"); co.Top != filepath.Join(g.dir, "1", treeName) {
		t.Errorf("a user was left behind: %s", co.Top)
	}
}

// TestManyFiles measures updates of 50,000 files, with 10 changes and with none.
func TestManyFiles(t *testing.T) {
	files := 5000
	if os.Getenv("SLUICE_BENCH") != "" {
		files = 50_000
	}
	g := newGround(t)
	first := g.commit(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do d=d$((i/100)); mkdir -p $d; j=0; while [ $j -lt 100 ]; do echo "file $i $j" >$d/f$j; j=$((j+1)); done; i=$((i+100)); done`, files))
	second := g.commit(`for i in 1 2 3 4 5 6 7 8 9 10; do echo changed >d$i/f$i; done`)
	var took []string
	for _, commit := range []string{first, second, second, first} {
		began := time.Now()
		g.at(commit, "a")
		took = append(took, time.Since(began).Round(time.Millisecond).String())
		g.release("a")
	}
	t.Logf("%d files: made in %s, 10 changed %s, none %s, 10 changed %s", files, took[0], took[1], took[2], took[3])
}

// TestRemovedOnce: after a restart, a checkout that is given up first is not taken for one that a
// killed process left half removed. Otherwise both would be removed, and the next user's would
// fail.
func TestRemovedOnce(t *testing.T) {
	g := newGround(t)
	commit := g.commit(firstFiles)
	for i := range keep + 1 {
		g.at(commit, fmt.Sprint("reader-", i))
	}
	left := filepath.Join(g.dir, goneMark+"left")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	g.c = New(Options{Dir: g.dir, Repo: g.repo, Start: "one", Over: func(string, bool) bool { return false }})
	gone, err := g.c.leave("reader-0")
	if err != nil || gone == "" {
		t.Fatal(gone, err)
	}
	g.at(commit, "next")
	if _, err := os.Stat(gone); err != nil {
		t.Errorf("what is being removed was swept: %v", err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what was left is still there")
	}
}
