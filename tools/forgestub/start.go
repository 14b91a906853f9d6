package forgestub

import (
	"os"
	"os/exec"
	"testing"
)

// Start makes a forge for a test, with the environment in which gh and git reach it. The test is
// skipped where there is no gh.
func Start(t testing.TB) (*Forge, []string) {
	t.Helper()
	if _, err := exec.LookPath("gh"); err != nil {
		t.Skip("needs: gh (apt-get install gh)")
	}
	f, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	env, err := f.Environ(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return f, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
}
