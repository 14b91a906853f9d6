package git

import (
	"os/exec"
	"testing"
)

// TestCheckRef: the same rule as git's.
func TestCheckRef(t *testing.T) {
	for _, name := range []string{"refs/heads/a", "refs/sluice/tip/w-1/A.1", "refs/heads/a#1", "refs/heads/é", "refs/heads/@", "refs/a", "refs/heads/a@b", "refs/heads/{a}", "refs/heads/-a",
		"refs/", "refs//a", "refs/heads/", "refs/heads/.a", "refs/heads/a.", "refs/heads/a./b", "refs/heads/a..b", "refs/heads/a.lock", "refs/a.lock/b", "refs/heads/a b", "refs/heads/a~", "refs/heads/a^",
		"refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", "refs/heads/a\\", "refs/heads/a@{b", "refs/heads/a\x7f", "refs/heads/a\x01", "refs/heads/a\nb", "refs/heads/a\t", "refs/heads/\xff", "refs/heads/a/"} {
		want := exec.Command("git", "check-ref-format", name).Run() == nil
		if got := checkRef(name) == nil; got != want {
			t.Errorf("%q: %v, git says %v", name, got, want)
		}
	}
	for _, name := range []string{"heads/a", "a", "", "refs", "--all"} {
		if checkRef(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
