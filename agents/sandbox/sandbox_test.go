package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestFind: where bubblewrap works at all, the whole trial holds.
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
	// A program that holds nothing is no sandbox.
	dir := t.TempDir()
	loose := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(loose), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), self, dir); err == nil || !strings.Contains(err.Error(), "does not hold") || !strings.Contains(err.Error(), "specs can be written") {
		t.Errorf("a sandbox that holds nothing: %v", err)
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

// last gives how a path is seen in the end.
func last(ms []Mount, path string) string {
	how := "no"
	for _, m := range ms {
		if m.Path == path || Inside(m.Path, path) {
			how = "ro"
			if m.Write {
				how = "rw"
			}
		}
	}
	return how
}

func TestMounts(t *testing.T) {
	top := repo(t)
	git := filepath.Join(top, ".git")
	main := Checkout{Top: top, GitDir: git, Common: git, Main: top, Others: []string{top, filepath.Join(top, "wt")}}
	ms, err := main.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"src/a.go": "rw", ".git/index": "rw", ".git/objects/ab": "rw", ".git/config": "ro", ".git/hooks/post-commit": "ro", ".git/info/attributes": "ro",
		".git/commondir": "ro", ".git/worktrees/x": "ro", ".git/modules/x": "ro", ".git/refs/sluice/salvage": "ro", ".git/refs/heads/x": "rw", "wt/file": "ro"} {
		if got := last(ms, filepath.Join(top, path)); got != want {
			t.Errorf("main checkout: %s is %s, want %s", path, got, want)
		}
	}
	if data, err := os.ReadFile(main.PinFile()); err != nil || string(data) != ".\n" {
		t.Errorf("pin %q: %v", data, err)
	}
	if err := Unpin(main.PinFile()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(main.PinFile()); err == nil {
		t.Error("the pin was left")
	}
	own := filepath.Join(git, "worktrees", "wt")
	linked := Checkout{Top: filepath.Join(top, "wt"), GitDir: own, Common: git, Main: top, Others: []string{top, filepath.Join(top, "wt")}}
	if ms, err = linked.Mounts(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"src/a.go": "ro", "wt/a.go": "rw", "wt/.git": "ro", ".git/config": "ro", ".git/HEAD": "ro", ".git/objects/ab": "rw", ".git/refs/heads/x": "rw",
		".git/refs/sluice/x": "ro", ".git/worktrees/wt/HEAD": "rw", ".git/worktrees/wt/commondir": "ro", ".git/worktrees/wt/gitdir": "ro", ".git/worktrees/other": "ro"} {
		if got := last(ms, filepath.Join(top, path)); got != want {
			t.Errorf("linked: %s is %s, want %s", path, got, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(git, "info/exclude")); err != nil || string(data) != "**/.workflow/signals/\n" {
		t.Errorf("what is not for git: %q %v", data, err)
	}
	if linked.PinFile() != "" {
		t.Error("a linked worktree needs no pin")
	}
}

// TestMountsOfWorktreeSettings: where a worktree may have settings of its own, the file is there and read-only.
func TestMountsOfWorktreeSettings(t *testing.T) {
	top := repo(t)
	git := filepath.Join(top, ".git")
	if err := os.WriteFile(filepath.Join(git, "config"), []byte("[extensions]\n\tworktreeConfig = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := Checkout{Top: top, GitDir: git, Common: git, Main: top}
	ms, err := c.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	if got := last(ms, filepath.Join(git, "config.worktree")); got != "ro" {
		t.Errorf("it is %s", got)
	}
	if _, err := os.Stat(filepath.Join(git, "config.worktree")); err != nil {
		t.Error("an agent could make it")
	}
}

// TestMountsThroughNoLink: what is a link could be anything.
func TestMountsThroughNoLink(t *testing.T) {
	for _, name := range []string{"hooks", "info", "config", "commondir", "refs/sluice"} {
		top := repo(t)
		git := filepath.Join(top, ".git")
		_ = os.RemoveAll(filepath.Join(git, name))
		if err := os.Symlink(t.TempDir(), filepath.Join(git, name)); err != nil {
			t.Skip(err)
		}
		if _, err := (Checkout{Top: top, GitDir: git, Common: git, Main: top}).Mounts(); err == nil {
			t.Errorf("%s is a link, and is taken", name)
		}
	}
}

// TestSeatbelt: the rules for macOS say what those for Linux do. They were never run.
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
