package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == CheckCommand {
		os.Exit(CheckMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == callsCommand {
		os.Exit(callsMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestLinkInPlaceOfAWorktree: a launch cannot write to what replaced a worktree after the check.
func TestLinkInPlaceOfAWorktree(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(work, "a repo")
	for _, d := range []string{"a repo/deep/tree", "home", "in", "victim", "a repo/victim"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree := filepath.Join(top, "deep/tree")
	same, err := Identify(top, tree)
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Home: "/root", Private: filepath.Join(work, "home"), Cwd: top, Network: NetNone, Inbox: filepath.Join(work, "in"),
		Shown: []Mount{{Path: top}, {Path: tree, Write: true}}, Same: []Identity{same}}
	held(t, p, `touch "`+tree+`/made"`)
	if _, err := os.Lstat(filepath.Join(tree, "made")); err != nil {
		t.Error(err)
	}
	bwrap, err := exec.LookPath("bwrap")
	check(t, err)
	script := `touch made; touch deep/tree/made; touch ../victim/made victim/made`
	for name, swap := range map[string]func(){
		"a link out of the repo": func() { link(t, "../../victim", tree) },
		"a link within it":       func() { link(t, "../victim", tree) },
		"a link to all":          func() { link(t, work, tree) },
		"another folder":         func() { check(t, os.Mkdir(tree, 0o755)) },
	} {
		_ = os.RemoveAll(tree + ".moved")
		check(t, os.Rename(tree, tree+".moved"))
		swap()
		b, err := newBox(bwrap, self(t))
		check(t, err)
		out, err := ran(t, b, p, script)
		if err == nil {
			t.Errorf("%s: it was started: %s", name, out)
		}
		for _, f := range []string{"victim/made", "a repo/victim/made"} {
			if _, err := os.Lstat(filepath.Join(work, f)); err == nil {
				t.Errorf("%s: %s was written\n%s", name, f, out)
			}
		}
		check(t, os.RemoveAll(tree))
		check(t, os.Rename(tree+".moved", tree))
	}
	link(t, "deep", filepath.Join(top, "other"))
	if _, err := Identify(top, filepath.Join(top, "other/tree")); err == nil || !strings.Contains(err.Error(), "a link") {
		t.Errorf("through a link: %v", err)
	}
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	check(t, err)
	return file
}

func link(t *testing.T, to, at string) {
	t.Helper()
	check(t, os.Symlink(to, at))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
