package retention

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/internal/layout"
	"sluice/internal/workspace"
)

// TestForgottenChildRun: the folder of a child run has a name of more than 64 characters, and is found like any other.
func TestForgottenChildRun(t *testing.T) {
	p := &workspace.Workspace{Root: t.TempDir()}
	run := strings.Repeat("long-", 20) + "1"
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir), run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"at":"2026-01-02T03:04:05Z","fact":{"kind":"run_forgotten","run":"` + run + `"}}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, daemon.RunEvents), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := forgottenRuns(p, daemon.Status{}); err != nil || len(got) != 1 || got[0].Run != run {
		t.Errorf("%v %v", got, err)
	}
}
