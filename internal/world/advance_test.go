//go:build linux

package world

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

const advanceSpec = `
workflow: {id: w, WORKSPACE}
steps:
  - id: A
    agent: {type: writer, prompt: do it}
    gate: G
  - id: B
    agent: {type: writer, prompt: go on}
    gate: H
gates:
  - {id: G, reviewer: {level: auto, run: "VERDICT"}, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 2}
  - {id: H, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// advancing runs the spec until a person is asked, and returns the branch's contents.
func advancing(t *testing.T, held bool, workspace, verdict, before string) *bench {
	source := strings.NewReplacer("WORKSPACE", workspace, "VERDICT", verdict).Replace(advanceSpec)
	b := newBench(t, source)
	b.hold(held)
	b.script("one", `git config user.name A; git config user.email a@example.org
echo "$SLUICE_STEP $SLUICE_ATTEMPT" >>made.txt
git add -A; git commit -qm "by $SLUICE_STEP"
echo left >"$SLUICE_STEP.txt"`)
	b.put(".workflow/specs/w.yaml", source)
	b.sh("git add -A && git commit -qm spec")
	if before != "" {
		b.sh(before)
	}
	cl, _ := b.loop()
	b.start(cl, source)
	eventually(t, "a person is asked", func() bool {
		s := b.status(cl)
		if s.Phase != engine.RunRunning {
			t.Fatalf("%+v", s)
		}
		for _, st := range s.Steps {
			for _, g := range st.Gates {
				if g.State == engine.OnHuman {
					return true
				}
			}
		}
		return false
	})
	return b
}

// TestBranchMovesAtThePass: the branch of a run has what has passed: the agent's own commits and what it left, and nothing
// of a step that still waits for its gate.
func TestBranchMovesAtThePass(t *testing.T) {
	conform.Rule(t, "9-one-tree branch", "the branch moves when the gate has passed")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) { branchMoves(t, advancing(t, held, "workspace: run", "true", "")) })
	}
}

func branchMoves(t *testing.T, b *bench) {
	files := b.sh("git ls-tree -r --name-only refs/sluice/taken/w-1/A.1")
	if !strings.Contains(files, "A.txt") || !strings.Contains(files, "made.txt") {
		t.Errorf("taken of A:\n%s", files)
	}
	if tip, a := b.sh("git log --format=%s sluice/w-1"), b.sh("git rev-parse refs/sluice/taken/w-1/A.1"); !strings.Contains(tip, "Uncommitted work") ||
		!strings.Contains(b.sh("git rev-list sluice/w-1"), strings.TrimSpace(a)) {
		t.Errorf("the branch lacks what passed:\n%s", tip)
	}
	if b.sh("git rev-list sluice/w-1 | grep -c $(git rev-parse refs/sluice/taken/w-1/B.1) || true") != "0" {
		t.Error("the branch has what waits for its gate")
	}
	if main := b.sh("git log --format=%s main"); strings.Contains(main, "by A") {
		t.Errorf("the person's branch moved:\n%s", main)
	}
	if st := b.sh("git status --porcelain -- . ':(exclude).workflow/audit'"); st != "" {
		t.Errorf("the person's checkout was touched:\n%s", st)
	}
}

// TestBranchStaysAtAFailure: what no round passed is on no branch by sluice's hand.
func TestBranchStaysAtAFailure(t *testing.T) {
	b := advancing(t, true, "workspace: run", "false", "")
	if tip, main := b.sh("git rev-parse sluice/w-1"), b.sh("git rev-parse main"); tip != main {
		t.Errorf("the branch has moved to what failed: %s", b.sh("git log --oneline sluice/w-1"))
	}
	if log := b.sh("git log --format=%s refs/sluice/taken/w-1/A.2"); strings.Count(log, "by A") != 2 {
		t.Errorf("the second attempt was not built on the first:\n%s", log)
	}
	if log := b.sh("git log --format=%s sluice/w-1"); strings.Contains(log, "Uncommitted work") {
		t.Errorf("the branch has what failed:\n%s", log)
	}
	diff := b.sh("git diff --name-only refs/sluice/found/w-1/A.1 refs/sluice/taken/w-1/A.2")
	if !strings.Contains(diff, "made.txt") {
		t.Errorf("the second attempt's work is %q", diff)
	}
}

// TestNoBranchOfACheckoutMoves: in a person's own checkout no branch moves by itself, and what the person had changed is no
// work of the step.
func TestNoBranchOfACheckoutMoves(t *testing.T) {
	conform.Rule(t, "9-one-tree checkout", "nothing of a person's goes onto a branch by itself")
	b := advancing(t, false, "description: in the checkout", "true", "echo mine >mine.txt; echo mine >>README.md")
	if log := b.sh("git log --format=%s main"); strings.Contains(log, "Uncommitted work") {
		t.Errorf("the branch moved:\n%s", log)
	}
	if diff := b.sh("git diff --name-only refs/sluice/found/w-1/A.1 refs/sluice/taken/w-1/A.1"); strings.Contains(diff, "mine.txt") || strings.Contains(diff, "README") {
		t.Errorf("the person's changes are shown as the step's: %s", diff)
	}
	var c tree.Covered
	if err := layout.Load(b.e.AttemptFile(run1, "B", 1, "files"), &c); err != nil {
		t.Fatal(err)
	}
	if diff := b.sh("git diff --name-only " + c.Found + " " + c.Taken.Commit); strings.Contains(diff, "A.txt") || !strings.Contains(diff, "B.txt") {
		t.Errorf("the work of the second step is %s", diff)
	}
}

// TestRefusedCommitsFailTheAttempt: commits that git refuses are the attempt's failure, with the reason; a history that was
// rewritten is none, and the files become one commit.
func TestRefusedCommitsFailTheAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		does, why string
	}{
		"a tree that git refuses": {`b=$(echo evil | git hash-object -w --stdin); t=$(printf "100644 blob $b\t.git\n" | git mktree --missing); git update-ref HEAD $(git commit-tree -p HEAD -m evil $t)`,
			"the step's commits cannot be taken"},
		"more files of Git LFS than are carried": {`git commit -q --allow-empty -m x; cd "$(git rev-parse --absolute-git-dir)" && mkdir -p lfs/objects/00/00 && cd lfs/objects/00/00 && seq -f %064.0f 10001 | xargs touch`,
			"more than 10000 files of Git LFS: leave out of the work what it does not need"},
		"a history of its own": {`git checkout -q --orphan x; git commit -qm x`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, strings.Replace(strings.Replace(advanceSpec, "WORKSPACE", "workspace: run", 1), "VERDICT", "true", 1))
			b.hold(true)
			b.script("one", "git config user.name A; git config user.email a@example.org; echo made >made.txt; "+c.does)
			b.sh("git add -A && git commit -qm before")
			j := inSpace(b.stepJob("A", 1, 1), space1)
			if ev := b.carry(j); ev.Exit.Code != 0 {
				t.Fatalf("%+v %s", ev.Exit, b.get(".workflow/runs/w-1/A.1/stderr"))
			}
			r := b.carry(inSpace(b.checkJob("A", 1), space1)).Check
			if c.why != "" && (r.OK || !strings.Contains(r.Why, c.why) || r.Broken != "") {
				t.Errorf("%+v", r)
			}
			if c.why != "" && (!strings.Contains(r.Why, "sluice attempt diff w-1 A.1") || b.sh("git show refs/sluice/salvage/w-1/A.1:made.txt") != "made") {
				t.Errorf("it does not say where the work is: %s", r.Why)
			}
			if _, dir, said := strings.Cut(r.Why, "the commits are in "); c.why != "" {
				if dir, _, _ = strings.Cut(dir, ", "); !said || !layout.IsDir(dir) {
					t.Errorf("the commits are not in %q: %s", dir, r.Why)
				}
			}
			if c.why == "" && (!r.OK || !strings.Contains(b.sh("git ls-tree --name-only refs/sluice/taken/w-1/A.1"), "made.txt")) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestBranchWasMovedBeforeAKill: the branch of a run had moved and the index of its worktree had not when the daemon was
// killed. The next one completes that: else the index stays locked, and a commit of all that is changed undoes the work.
func TestBranchWasMovedBeforeAKill(t *testing.T) {
	b := newBench(t, strings.NewReplacer("WORKSPACE", "workspace: run", "VERDICT", "true").Replace(advanceSpec))
	b.hold(true)
	b.script("one", "echo made >made.txt")
	b.sh("git add -A && git commit -qm before")
	j := inSpace(b.stepJob("A", 1, 1), space1)
	if ev := b.carry(j); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, b.get(".workflow/runs/w-1/A.1/stderr"))
	}
	if r := b.carry(inSpace(b.checkJob("A", 1), space1)).Check; !r.OK {
		t.Fatalf("%+v", r)
	}
	taken, base := b.sh("git rev-parse refs/sluice/taken/w-1/A.1"), b.sh("git rev-parse sluice/w-1")
	purpose, err := json.Marshal(tree.Advance{Branch: "refs/heads/sluice/w-1", From: base, To: taken, Top: b.path(space1)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := b.git.HoldIndex(b.ctx(), b.path(space1), waitFor)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := b.git.ChangesBetween(b.ctx(), base, taken)
	err = errors.Join(err, h.Begin(string(purpose)), h.Patch(b.ctx(), changes),
		b.git.MoveRef(b.ctx(), b.root, "refs/heads/sluice/w-1", base, taken, "x"), h.Leave())
	if err != nil {
		t.Fatal(err)
	}
	moves := j
	moves.Effect = engine.Effect{Run: run1, Key: run1 + "/A#1.branch", Write: &engine.Write{Step: "A", N: 1}}
	for range 2 {
		if why := b.e.Advance(b.ctx(), moves); why != "" {
			t.Fatal(why)
		}
		if got := b.sh("cd " + space1 + " && git status --porcelain && git add -A && git status --porcelain"); got != "" {
			t.Errorf("status of the worktree:\n%s", got)
		}
	}
}
