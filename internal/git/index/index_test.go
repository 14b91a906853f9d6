package index

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A real index in both object formats and with flags: its submodules, and its times.
func TestIndexOfGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			sh := func(script string) string {
				t.Helper()
				cmd := exec.Command("sh", "-ec", script)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatal(err, string(out))
				}
				return string(out)
			}
			sh(`git init -q --object-format=` + format + ` && git config index.version 2
				echo x >a.txt && echo y >b.txt && git add . && git update-index --skip-worktree b.txt
				git update-index --add --cacheinfo 160000,$(git hash-object a.txt),sub/deep`)
			file := filepath.Join(dir, ".git", "index")
			links, err := Links(file, format)
			if err != nil || !slices.Equal(links, []string{"sub/deep"}) {
				t.Error(links, err)
			}
			before := sh("git ls-files --stage -v")
			if err := ForgetFresh(file, format, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			if after := sh("git fsck --no-dangling 2>/dev/null; git ls-files --stage -v"); after != before {
				t.Errorf("%s\nnow\n%s", before, after)
			}
			if got := sh("git ls-files --debug a.txt | grep ctime"); got != "  ctime: 0:0\n" {
				t.Errorf("%q", got)
			}
			sh("git update-index --index-version 4")
			if _, err := Links(file, format); err == nil {
				t.Error("read an index of version 4")
			}
			if _, err := os.Lstat(file); err == nil {
				t.Error("kept what it cannot read")
			}
			if links, err := Links(file, format); err != nil || links != nil {
				t.Error(links, err)
			}
		})
	}
}
