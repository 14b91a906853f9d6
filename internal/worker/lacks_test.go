package worker

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/internal/git"
	"sluice/internal/layout"
)

// The pack of an order can build on what earlier orders have brought: what the clone began with gets old.
func TestLacksOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("GIT_COMMITTER_DATE=%d +0000", 1_700_000_000+n))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q", "-b", "main")
	run("commit", "-q", "--allow-empty", "-m", "the clone's")
	head := run("rev-parse", "HEAD")
	brought := ""
	for n = range newestMost + 5 {
		brought = run("commit-tree", "-p", head, "-m", fmt.Sprint(n), head+"^{tree}")
		run("update-ref", fmt.Sprintf("refs/sluice/taken/r/A.%d", newestMost+10-n), brought) // last in the order of names first
	}
	repo, err := git.OpenWith(t.Context(), dir, git.Options{Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	w := New(Options{Layout: layout.Layout{Root: dir, State: t.TempDir()}, Git: repo})
	have, lacks, err := w.Lacks(t.Context(), launch.Sent{Key: "r/B#1.1", Start: strings.Repeat("1", 40)})
	if err != nil || !lacks || !slices.Contains(have, head) || !slices.Contains(have, brought) || len(have) > newestMost+1 {
		t.Errorf("it has %q: %v, %v", have, lacks, err)
	}
}
