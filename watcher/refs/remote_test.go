package refs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
)

// TestRemote: the first address counts until a person says otherwise, and nobody shows its password.
func TestRemote(t *testing.T) {
	t.Parallel()
	root, state := t.TempDir(), t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	run("init", "-q")
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	r := New(Options{Layout: layout.Layout{State: state}, Git: repo})
	says := func(want string, advice ...string) {
		t.Helper()
		got, err := r.Remote(t.Context())
		f, _ := err.(*fault.Error)
		switch {
		case len(advice) == 0 && (err != nil || got != want):
			t.Errorf("%q %v", got, err)
		case len(advice) == 1 && (f == nil || f.Cause != want || !strings.Contains(f.Advice, advice[0])):
			t.Errorf("%v", err)
		}
	}
	says("the repo has no remote named origin", "git remote add origin ADDRESS")
	run("remote", "add", "origin", "https://me:secret@h.test/acme/dates.git")
	says("https://me:secret@h.test/acme/dates.git")
	run("remote", "set-url", "origin", "https://h.test/acme/times.git")
	file := filepath.Join(state, remoteFile)
	says(`the remote origin is "https://h.test/acme/times.git" now, and the runs here work with https://me:xxxxx@h.test/acme/dates.git`,
		"if you changed it: rm "+file+"; else")
	run("remote", "remove", "origin")
	says("https://me:secret@h.test/acme/dates.git")
	run("remote", "add", "origin", "https://h.test/acme/times.git")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	says("https://h.test/acme/times.git")
}
