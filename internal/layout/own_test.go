package layout

import "testing"

// TestReserved: what decides or records is not for what agents say; a folder of its own, and a run's files, are.
func TestReserved(t *testing.T) {
	for p, want := range map[string]string{
		".workflow/prompts/reviewer.md": ".workflow/prompts", ".Workflow/./Prompts/x": ".workflow/prompts", ".workflow/agents/lint.sh": ".workflow/agents",
		".workflow/gates.yaml": ".workflow/gates.yaml", ".workflow/stubs/p.yaml": ".workflow/stubs", ".workflow/worktrees/p-2/a.go": ".workflow/worktrees",
		".workflow/scripts/gate.sh": ".workflow/scripts", ".workflow/runs/p-1/A.1/answer.json": ".workflow/runs", ".workflow/runs/p-1/spec.yaml": ".workflow/runs",
		".workflow/runs/p-1/files/a/b.md": "", ".workflow/runs/p-1/found.json": "", ".workflow/backlog/p.json": "", ".workflow/verdict.json": "",
		"prompts/reviewer.md": "", ".workflow": "", "a/.workflow/specs/w.yaml": "",
	} {
		if got := Reserved(p); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}
