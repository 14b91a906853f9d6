package world

import (
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/job"
)

// What one run's launch sees of the others' worktrees, and of the person's checkout, is nothing it could write.
func TestWorkspaceHeld(t *testing.T) {
	b := held(t, `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, signal: {type: sentinel_file}, next_step: DONE}
`)
	b.sh("mkdir -p .workflow/worktrees/w-2 && echo secret >.workflow/worktrees/w-2/other")
	b.script("works", `
ls "`+b.root+`/.workflow/worktrees" >seen.txt
echo x 2>/dev/null >"`+b.root+`/README.md" || echo refused >>seen.txt
echo x 2>/dev/null >.workflow/planted || echo refused >>seen.txt
git add -A && git -c user.name=x -c user.email=x@example.org commit -q -m made
echo '{"status": "done"}' >"$SLUICE_SIGNAL"
`)
	if ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v\n%s", ev.Exit, b.get(".workflow/runs/w-1/A.1/stderr"))
	}
	if got := b.get(space1 + "/seen.txt"); got != "w-1\nrefused\nrefused\n" {
		t.Errorf("seen: %q", got)
	}
	seen := b.scanned(job.Inboxes{Runs: []string{run1}, Trees: []string{space1}}, 1)
	if seen[0].Sentinel == nil {
		t.Errorf("%+v", seen[0])
	}
	// A launch in the person's checkout sees none of them.
	b.script("works", `ls .workflow/worktrees >seen.txt; echo '{"status": "done"}' >"$SLUICE_SIGNAL"`)
	if ev := b.carry(b.stepJob("A", 2, 1)); ev.Exit.Code != 0 || b.get("seen.txt") != "" {
		t.Errorf("%+v %q", ev.Exit, b.get("seen.txt"))
	}
	if _, err := os.Stat(filepath.Join(b.root, ".workflow/worktrees/w-2/other")); err != nil {
		t.Error(err)
	}
}
