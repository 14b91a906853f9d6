package signals

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// Git's own derivatives of a marked commit do not count. Git may change its wording, so the test
// runs git.
func TestMarkerInWhatGitMakesOfACommit(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "what git makes of a marked commit fires nothing")
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs: git")
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "LC_ALL=C",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	last := func() string { return git("log", "-1", "--format=%B") }
	const value = "[GATE:X]"
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "root")
	for _, message := range []string{"add [GATE:X]", "[GATE:X]", "add\n\n[GATE:X]"} {
		git("checkout", "-q", "-B", "work", "main")
		if err := os.WriteFile(dir+"/f", []byte(message), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "f")
		git("commit", "-q", "-m", message)
		if !Marker(last(), value) {
			t.Errorf("not found in %q", last())
		}
		git("revert", "--no-edit", "HEAD")
		if got := last(); Marker(got, value) || !strings.Contains(got, "This reverts commit") {
			t.Errorf("fires in the revert %q", got)
		}
		git("revert", "--no-edit", "HEAD")
		if Marker(last(), value) {
			t.Errorf("fires in the revert's revert %q", last())
		}
		git("reset", "-q", "--hard", "HEAD~2")
		git("commit", "-q", "--allow-empty", "--fixup", "HEAD")
		if got := last(); Marker(got, value) {
			t.Errorf("fires in the fixup %q", got)
		}
		git("checkout", "-q", "main")
		git("merge", "-q", "--squash", "work")
		git("commit", "-q", "--no-edit")
		if got := last(); Marker(got, value) || !strings.Contains(got, value) {
			t.Errorf("fires in the squash, or it quotes nothing: %q", got)
		}
		git("reset", "-q", "--hard", "HEAD~1")
		git("merge", "-q", "--no-ff", "--log", "--no-edit", "work")
		if got := last(); Marker(got, value) {
			t.Errorf("fires in the merge %q", got)
		}
		git("reset", "-q", "--hard", "HEAD~1")
	}
}
