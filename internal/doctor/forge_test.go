package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

// TestForgeOf: a workflow that needs gh, where there is none.
func TestForgeOf(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for on, says := range map[string]string{
		"":                              "",
		"on: {files: [a]}\n":            "",
		"on: {issue: {labels: [go]}}\n": "w looks for issues, and gh is not installed",
		"  workspace: run\n  on_done: {land: pr}\n": "w opens pull requests, and gh is not installed",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, ".workflow/specs"), 0o755); err != nil {
			t.Fatal(err)
		}
		spec := "workflow:\n  id: w\n" + on + "steps:\n  - {id: a, run: [true], next_step: DONE}\n"
		if err := os.WriteFile(filepath.Join(root, ".workflow/specs/w.yaml"), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		all, _ := specsOf(root)
		if len(all) != 1 {
			t.Fatalf("%s: it cannot be read", spec)
		}
		got := ""
		for _, c := range forgeOf(all) {
			got += c.Says
		}
		if got != says {
			t.Errorf("%s: %q, want %q", on, got, says)
		}
	}
}
