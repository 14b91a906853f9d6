//go:build linux

package world

import (
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

const vetoSpec = `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
  - {id: B, agent: {type: writer, prompt: go on}, gate: H}
  - {id: C, agent: {type: writer, prompt: go on}, gate: I}
gates:
  - {id: G, reviewer: {level: notify, run: "true"}, veto_window: 50ms, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 3}
  - {id: H, reviewer: {level: auto, run: "true"}, on_pass: {next_step: C}}
  - {id: I, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// TestLateVetoTakesTheBranchBack: what was built on vetoed work leaves the branch and the folder, and is kept; the next
// attempt goes on from the vetoed work itself.
func TestLateVetoTakesTheBranchBack(t *testing.T) {
	conform.Rule(t, "9-one-tree veto", `"A late veto stops what was built on the work, salvages it, and moves the branch back"`)
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) { vetoedLate(t, held) })
	}
}

func vetoedLate(t *testing.T, held bool) {
	b := newBench(t, vetoSpec)
	b.hold(held)
	b.script("one", `git config user.name A; git config user.email a@example.org
echo "seen by $SLUICE_STEP.$SLUICE_ATTEMPT:" *
echo "$SLUICE_STEP $SLUICE_ATTEMPT" >>made.txt
git add -A; git commit -qm "by $SLUICE_STEP $SLUICE_ATTEMPT"
echo left >"$SLUICE_STEP.txt"`)
	b.put(".workflow/specs/w.yaml", vetoSpec)
	b.sh("git add -A && git commit -qm spec")
	cl, _ := b.loop()
	b.start(cl, vetoSpec)
	asked := func(n int) func() bool {
		return func() bool {
			s := b.status(cl)
			if s.Phase != engine.RunRunning {
				t.Fatalf("%+v", s)
			}
			g := s.Steps[2].Gates[0]
			return g.State == engine.OnHuman && s.Steps[2].Attempt == n
		}
	}
	eventually(t, "C is done", asked(1))
	built := strings.TrimSpace(b.sh("git rev-parse sluice/w-1"))
	done, err := cl.Do(b.ctx(), engine.Answered{Run: run1, Gate: "G", Outcome: engine.OutcomeVeto, Text: "not so", Written: b.e.opt.Now()}, "command")
	if err != nil || done.Ignored != "" {
		t.Fatalf("%+v %v", done, err)
	}
	eventually(t, "C is done again", asked(2))
	if log := b.sh("git log --format=%s sluice/w-1"); strings.Contains(log, "by B 1") || held != strings.Contains(log, "by A 1") || !strings.Contains(log, "by B 2") {
		t.Errorf("the branch has\n%s", log)
	}
	if b.sh("git rev-list sluice/w-1 | grep -c "+built+" || true") != "0" {
		t.Error("the branch still has what was built on the vetoed work")
	}
	if moved := b.sh("git reflog --format=%H sluice/w-1"); !strings.Contains(moved, built) {
		t.Errorf("the branch never had it:\n%s", moved)
	}
	if out := b.get(".workflow/runs/w-1/A.2/stdout"); !strings.Contains(out, "A.txt") || strings.Contains(out, "B.txt") || strings.Contains(out, "C.txt") {
		t.Errorf("the next attempt found %q", out)
	}
	if files := b.sh("git ls-tree -r --name-only refs/sluice/salvage/w-1/A.2.before"); !strings.Contains(files, "B.txt") || !strings.Contains(files, "C.txt") {
		t.Errorf("kept of what was built:\n%s", files)
	}
	if diff := b.sh("git diff --name-only refs/sluice/found/w-1/A.1 refs/sluice/taken/w-1/A.2"); strings.TrimSpace(diff) != "A.txt\nmade.txt" {
		t.Errorf("the second attempt's work is %q", diff)
	}
	if st := strings.TrimSpace(b.sh("git -C .workflow/worktrees/w-1 status --porcelain")); !strings.HasSuffix(st, "?? C.txt") || strings.Contains(st, "B.txt") {
		t.Errorf("status of the worktree:\n%s", st)
	}
}
