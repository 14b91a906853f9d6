package layout

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNewest(t *testing.T) {
	root := t.TempDir()
	if n := Newest(root, "w"); n != 0 {
		t.Errorf("of an empty repo: %d", n)
	}
	for _, dir := range []string{"runs/w-2", "runs/w-10", "runs/w-x", "runs/w-a-40", "runs/w-07", "runs/last",
		"runs/w-99999999999", "worktrees/w-11"} {
		if err := os.MkdirAll(filepath.Join(root, WorkflowDir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if n := Newest(root, "w"); n != 11 {
		t.Errorf("%d, want 11", n)
	}
}
