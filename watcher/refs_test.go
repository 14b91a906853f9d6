package watcher

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/git"
	"sluice/tools/conform"
)

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A commit is hinted at by an event, wherever it is made, also after its ref's folder was packed
// away; and the next Poll has it.
func TestRefWatch(t *testing.T) {
	conform.Rule(t, "004 §2 Signal.git_commit", "a commit is hinted at wherever it is made")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, tree := filepath.Join(dir, "repo"), filepath.Join(dir, "wt")
	run(t, dir, "init", "-q", "-b", "main", root)
	run(t, root, "commit", "-q", "--allow-empty", "-m", "first")
	repo, err := git.Open(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := repo.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := start(t, quiet())
	r := w.WatchRefs(repo)
	poll := func() (map[string]string, bool) {
		t.Helper()
		refs, changed, err := r.Poll(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return refs, changed
	}
	if _, changed := poll(); !changed {
		t.Error("the first look is no change")
	}
	if _, changed := poll(); changed {
		t.Error("a change where there is none")
	}
	for _, step := range []struct {
		what string
		do   func()
		at   string
	}{
		{"commit", func() { run(t, root, "commit", "-q", "--allow-empty", "-m", "x") }, "refs/heads/main"},
		{"new worktree", func() { run(t, root, "worktree", "add", "-q", "-b", "feat/deep/x", tree) }, "refs/heads/feat/deep/x"},
		{"commit there", func() { run(t, tree, "commit", "-q", "--allow-empty", "-m", "x") }, "refs/heads/feat/deep/x"},
		{"commit after packing", func() {
			run(t, root, "pack-refs", "--all", "--prune")
			poll()
			run(t, tree, "commit", "-q", "--allow-empty", "-m", "x")
		}, "refs/heads/feat/deep/x"},
		{"detached", func() {
			run(t, tree, "checkout", "-q", "--detach")
			run(t, tree, "commit", "-q", "--allow-empty", "-m", "x")
		}, git.HeadPrefix + tree},
	} {
		step.do()
		var refs map[string]string
		want := ""
		until(t, w, step.what, func() bool {
			refs, _ = poll()
			where := root
			if strings.Contains(step.at, "x") || strings.HasSuffix(step.at, "wt") {
				where = tree
			}
			want = run(t, where, "rev-parse", "HEAD")
			return refs[step.at] == want
		})
	}
	r.Close()
	if list := w.source.WatchList(); len(list) != 0 {
		t.Errorf("still watched: %q", list)
	}
}
