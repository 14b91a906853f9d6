package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFind: if bubblewrap works at all, the complete trial passes.
func TestFind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("bubblewrap is of Linux")
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("needs: bwrap (apt-get install bubblewrap)")
	}
	if out, err := exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "true").CombinedOutput(); err != nil {
		t.Skipf("kernel: user namespaces: %s", out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), self, ""); err != nil {
		t.Error(err)
	}
	_, err = Find(context.Background(), self, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "apt-get install bubblewrap") {
		t.Errorf("without the program: %v", err)
	}
	t.Run("a machine on which it cannot be tried", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
		if _, err := Find(context.Background(), self, ""); !errors.Is(err, ErrUntried) || errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("a missing temporary folder says that there is no sandbox: %v", err)
		}
	})
	// A program that confines nothing is no sandbox.
	dir := t.TempDir()
	loose := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(loose), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), self, dir); err == nil || !strings.Contains(err.Error(), "does not hold") || !strings.Contains(err.Error(), "specs can be written") {
		t.Errorf("a sandbox that holds nothing: %v", err)
	}
}

// TestTrial: a trial that could not be made is made again, and what one found out stands.
func TestTrial(t *testing.T) {
	results := []error{ErrUntried, fmt.Errorf("%w: a full disk", ErrUntried), nil, ErrUnavailable}
	trials := 0
	box := Trial(0, func() (*Box, error) { trials++; return &Box{}, results[trials-1] })
	for i, want := range []error{ErrUntried, ErrUntried, nil, nil} {
		if _, err := box(); !errors.Is(err, want) {
			t.Errorf("question %d: %v, want %v", i+1, err, want)
		}
	}
	if trials != 3 {
		t.Errorf("%d trials", trials)
	}
	rare := Trial(time.Hour, func() (*Box, error) { trials++; return nil, ErrUntried })
	for range 3 {
		_, _ = rare()
	}
	if trials != 4 {
		t.Errorf("%d trials without a rest", trials-3)
	}
}

// repo is the skeleton of a git folder.
func repo(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"objects", "refs", "worktrees/wt"} {
		if err := os.MkdirAll(filepath.Join(top, ".git", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for f, text := range map[string]string{".git/config": "[core]\n", ".git/worktrees/wt/commondir": "../..\n", ".git/worktrees/wt/gitdir": top + "/wt/.git\n", "wt/.git": "gitdir: " + top + "/.git/worktrees/wt\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, f), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// at returns what is finally visible at a path, and how.
func at(ms []Mount, path string) string {
	how := "no"
	for _, m := range ms {
		to := m.At
		if to == "" {
			to = m.Path
		}
		rel, err := filepath.Rel(to, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		how = "ro "
		if m.Write {
			how = "rw "
		}
		how += filepath.Join(m.Path, rel)
	}
	return how
}

// TestMounts: nothing of the repo's git folder is writable in any kind of checkout; the launch's
// own replaces it.
func TestMounts(t *testing.T) {
	top := repo(t)
	git, own, side := filepath.Join(top, ".git"), filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "aside")
	borrowed := t.TempDir()
	for _, d := range []string{".git/modules/m", ".git/worktrees/wt/modules/m", ".git/lfs/objects", ".git/objects/info", "filled/deep", "empty"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{".git/objects/info/alternates", "filled/.git", "file"} {
		if err := os.WriteFile(filepath.Join(top, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := func(rel string) string { return filepath.Join(top, rel) }
	c := Checkout{Top: top, GitDir: git, Common: git, Main: top, Linked: []string{in("wt")}, Own: own, Aside: side, Stores: []string{in(".git/objects"), borrowed},
		Submodules: []Submodule{{in("filled"), true}, {in("empty"), false}, {in("gone"), false}, {in("file"), false}}}
	want := map[string]string{
		in("src/a.go"): "rw " + in("src/a.go"), in(".git/index"): "rw " + own + "/index", in(".git/config"): "rw " + own + "/config",
		in(".git/modules/m"): "ro " + in(".git/modules/m"), in("wt/file"): "ro " + in("wt/file"), in("filled/.git"): "ro " + in("filled/.git"), in("filled/a"): "rw " + in("filled/a"),
		in("empty/.git"): "ro " + side + "/empty/.git", in("gone/.git"): "ro " + side + "/empty/.git", in("file"): "ro " + in("file"),
		StoreAt(0) + "/ab": "ro " + in(".git/objects/ab"), StoreAt(1) + "/ab": "ro " + borrowed + "/ab", StoreAt(0) + "/info/alternates": "ro " + side + "/none",
		"/run/sluice/repo/lfs/objects/ab": "ro " + in(".git/lfs/objects/ab"),
	}
	seen := func(what string, c Checkout, want map[string]string) {
		t.Helper()
		ms, err := c.Mounts()
		if err != nil {
			t.Fatal(err)
		}
		for path, how := range want {
			if got := at(ms, path); got != how {
				t.Errorf("%s: %s is %s, want %s", what, path, got, how)
			}
		}
		for _, m := range ms {
			if m.Write && Inside(git, m.Path) {
				t.Errorf("%s: %s of the repo can be written", what, m.Path)
			}
		}
	}
	seen("main checkout", c, want)
	linked := Checkout{Top: in("wt"), GitDir: in(".git/worktrees/wt"), Common: git, Main: top, Own: own, Aside: side, Stores: c.Stores}
	seen("linked", linked, map[string]string{
		in("src/a.go"): "ro " + in("src/a.go"), in("wt/a.go"): "rw " + in("wt/a.go"), in("wt/.git"): "ro " + side + "/dot", in(".git/config"): "ro " + side + "/common/config",
		in(".git/worktrees/wt/modules/m"): "ro " + in(".git/worktrees/wt/modules/m"), GitAt + "/index": "rw " + own + "/index",
	})
	if data, err := os.ReadFile(filepath.Join(side, "dot")); err != nil || string(data) != "gitdir: "+GitAt+"\n" {
		t.Errorf("the file .git says %q: %v", data, err)
	}
	around := Checkout{Top: top, GitDir: git, Common: git, Main: in("inner"), Own: own, Aside: side}
	seen("the root lies within", around, map[string]string{in("inner/a"): "ro " + in("inner/a"), in("a"): "rw " + in("a")})
	c.InPlace = true
	seen("in place", c, map[string]string{in(".git/config"): "ro " + in(".git/config"), in("a"): "rw " + in("a"), own + "/config": "rw " + own + "/config", in("empty/.git"): "ro " + in("empty/.git")})
}

// TestMountsThroughNoLink: a link could lead anywhere.
func TestMountsThroughNoLink(t *testing.T) {
	for _, name := range []string{".git", "sub", "sub/.git"} {
		top := repo(t)
		if err := os.MkdirAll(filepath.Join(top, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Join(top, name))
		if err := os.Symlink(t.TempDir(), filepath.Join(top, name)); err != nil {
			t.Skip(err)
		}
		git := filepath.Join(top, ".git")
		c := Checkout{Top: top, GitDir: git, Common: git, Main: top, Own: t.TempDir(), Aside: t.TempDir(), Submodules: []Submodule{{filepath.Join(top, "sub"), name == "sub/.git"}}}
		if _, err := c.Mounts(); err == nil {
			t.Errorf("%s is a link, and is taken", name)
		}
	}
}

// TestSeatbelt: the rules for macOS match those for Linux. They were never run.
func TestSeatbelt(t *testing.T) {
	p := Plan{Self: "/opt/sluice", Home: "/Users/x", Private: "/s/home", Hide: []string{"/s"}, Inbox: "/s/in", Cwd: "/r", Network: NetProxy, Ports: []string{"127.0.0.1:11434"}, InPlace: true, Own: []string{"/r/.workflow/own"},
		Shown: []Mount{{Path: "/r", Write: true}, {Path: "/r/.workflow"}}}
	argv := p.Seatbelt("/usr/bin/sandbox-exec", []string{"agent", "-p"})
	if len(argv) != 5 || argv[1] != "-p" || !slices.Equal(argv[3:], []string{"agent", "-p"}) {
		t.Fatalf("%q", argv)
	}
	if got := p.HomeInside(); got != "/s/home" {
		t.Errorf("its home is %s", got)
	}
	at := -1
	for _, want := range []string{"(deny file-write*)", `(deny file-read* (subpath "/s"))`, `(deny file-read* (subpath "/Users/x"))`, "(deny network*)", `(remote tcp "*:443")`, `(remote tcp "localhost:11434")`, `(allow file-write* (subpath "/r"))`, `(deny file-write* (subpath "/r/.workflow"))`, `(allow file-write* (subpath "/s/in"))`} {
		i := strings.Index(argv[2], want)
		if i <= at { // later rules count
			t.Errorf("%s is missing, or too early, in\n%s", want, argv[2])
		}
		at = i
	}
}

// TestUncovered: a mount hidden by a later one is dropped, and the others keep their order.
func TestUncovered(t *testing.T) {
	got := Uncovered([]Mount{{Path: "/a/b"}, {Path: "/x", At: "/a/c"}, {Path: "/b"}, {Path: "/a", Try: true}, {Path: "/a/c"}, {Path: "/a/c/d"}, {Path: "/b", Write: true}, {Path: "/bb"}})
	want := []Mount{{Path: "/a/b"}, {Path: "/a", Try: true}, {Path: "/a/c"}, {Path: "/a/c/d"}, {Path: "/b", Write: true}, {Path: "/bb"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
