package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxKept bounds a file of the repo: a larger one was built, and committed by mistake. It stays in the history for good.
const maxKept = 1 << 20

// TestNothingBuiltIsCommitted: what git has of the repo is text that somebody wrote, and small fixtures.
func TestNothingBuiltIsCommitted(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join("../..", name)); err == nil && info.Size() > maxKept {
			t.Errorf("%s has %d KiB: git rm --cached it, and ignore it", name, info.Size()>>10)
		}
	}
}
