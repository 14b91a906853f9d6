package folders

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// TestGitSettingsOfAWorktree: in a run's own worktree the files in the same places are law, and no
// others.
func TestGitSettingsOfAWorktree(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(root, "wt")
	bases := gates.Bases{Root: root, Top: top, Dir: top}
	sh := exec.Command("sh", "-ec", "git init -q -b main .; git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m first; git worktree add -q wt; git config core.hooksPath '"+root+"/hooks'; git config commit.template "+os.DevNull+"; git config core.editor vi")
	sh.Dir = root
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	repo, err := git.OpenWith(t.Context(), root, git.Options{Scratch: filepath.Join(t.TempDir(), "scratch")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	x, err := New(Options{Layout: layout.Layout{Root: root, State: t.TempDir()}, Notes: &health.Notes{Log: t.Logf}, Git: repo, Settings: settings.Default})
	if err != nil {
		t.Fatal(err)
	}
	j := job.Job{Effect: engine.Effect{Run: "w-1"}}
	named, err := x.gitFiles(t.Context(), j, tree.Begin{Top: top, Dir: top})
	if err != nil {
		t.Fatal(err)
	}
	l := gates.LawOf(&engine.Spec{}, nil, named, nil, bases)
	if got := l.Guarded([]string{"hooks/pre-push", "src/hooks/x", "vi", "null"}, nil); !slices.Equal(got, []string{"hooks/pre-push"}) {
		t.Errorf("%q of %q", got, named)
	}
}
