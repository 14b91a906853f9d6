package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// held runs a script in the sandbox and returns its output.
func held(t *testing.T, p Plan, script string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Find(context.Background(), self, "")
	switch {
	case err != nil && strings.Contains(err.Error(), "not installed"):
		t.Skip("needs: bwrap (apt-get install bubblewrap)")
	case err != nil:
		t.Skipf("kernel: user namespaces: %v", err)
	}
	out, err := ran(t, b, p, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// ran starts a script in the sandbox and waits for its end.
func ran(t *testing.T, b *Box, p Plan, script string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start, err := b.Wrap(p, []string{"/bin/sh", "-c", script}, []string{"PATH=" + os.Getenv("PATH")})
	check(t, err)
	cmd, err := start.Command(ctx)
	check(t, err)
	defer start.Handed(cmd)
	return cmd.CombinedOutput()
}

// planOf returns a plan over a temporary folder.
func planOf(t *testing.T) Plan {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for _, d := range []string{"top", "home", "in"} {
		check(t, os.Mkdir(filepath.Join(work, d), 0o755))
	}
	top := filepath.Join(work, "top")
	return Plan{Home: "/root", Private: filepath.Join(work, "home"), Cwd: top, Network: NetNone, Inbox: filepath.Join(work, "in"), Shown: []Mount{{Path: top, Write: true}}}
}

// TestNothingIsMovedAway: nobody can move a folder that contains a mount, and hidden folders stay
// hidden inside a checkout.
func TestNothingIsMovedAway(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(work, "repo")
	for _, d := range []string{"repo/a/b/kept", "repo/a/c/kept", "repo/s/state", "repo/free", "home", "in", "repo/.workflow/signals"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "s/state/secret"), []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Plan{Home: "/root", Private: filepath.Join(work, "home"), Hide: []string{filepath.Join(top, "s/state")}, Cwd: top, Network: NetNone, Inbox: filepath.Join(work, "in"),
		Shown: []Mount{{Path: top, Write: true}, {Path: filepath.Join(top, "a/b/kept")}, {Path: filepath.Join(top, "a/c/kept")}, {Path: filepath.Join(top, ".workflow")},
			{Path: top, At: filepath.Join(top, "free")}},
		Inboxes: []string{filepath.Join(top, ".workflow/signals")}}
	got := held(t, p, `mv free moved; mv a a2; mv a/b a/b2; mv s s2; touch a/b/kept/x; touch a/c/kept/x; touch a/file a/b/file; cat s/state/secret free/s/state/secret; echo planted >s/state/secret; true`)
	if strings.Contains(got, "a secret") {
		t.Errorf("what is hidden was read:\n%s", got)
	}
	for path, there := range map[string]bool{"a": true, "a2": false, "a/b": true, "a/b2": false, "s2": false, "a/b/kept/x": false, "a/c/kept/x": false, "a/file": true, "a/b/file": true} {
		_, err := os.Lstat(filepath.Join(top, path))
		if errors.Is(err, fs.ErrNotExist) == there {
			t.Errorf("%s: there %v, want %v\n%s", path, !there, there, got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(top, "s/state/secret")); err != nil || string(data) != "a secret" {
		t.Errorf("what is hidden was written: %q %v", data, err)
	}
}

// TestTheInboxOfTheRunStays: a launch puts no link in the place of its run's folder in its own inbox, which would lead
// whoever reads the inbox, or moves a file out of it, to somewhere else.
func TestTheInboxOfTheRunStays(t *testing.T) {
	p := planOf(t)
	signals := filepath.Join(p.Cwd, ".workflow/signals")
	check(t, os.MkdirAll(signals, 0o755))
	check(t, os.Mkdir(filepath.Join(p.Inbox, "w-1"), 0o755))
	p.Inboxes, p.Run = []string{signals}, "w-1"
	got := held(t, p, `cd .workflow/signals; mv w-1 was; rmdir w-1; ln -s / w-1; echo {} >w-1/A-done.json; echo {} >B-done.json; ls`)
	for _, name := range []string{"w-1/A-done.json", "B-done.json"} {
		if _, err := os.Lstat(filepath.Join(p.Inbox, name)); err != nil {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if !isDir(filepath.Join(p.Inbox, "w-1")) {
		t.Errorf("it was replaced:\n%s", got)
	}
}

// TestGitFileOfTheMainCheckout: if the git folder is elsewhere, it is invisible, and the file that
// points to it is read-only.
func TestGitFileOfTheMainCheckout(t *testing.T) {
	top := repo(t)
	git := filepath.Join(t.TempDir(), "git")
	if err := os.Rename(filepath.Join(top, ".git"), git); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: "+git+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	own, side := t.TempDir(), t.TempDir()
	ms, err := Checkout{Top: top, GitDir: git, Common: git, Main: top, Own: own, Aside: side}.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(top, ".git"): "ro " + side + "/dot", filepath.Join(top, "file"): "rw " + filepath.Join(top, "file"),
		filepath.Join(git, "config"): "ro " + side + "/common/config", GitAt + "/config": "rw " + own + "/config"} {
		if got := at(ms, path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
