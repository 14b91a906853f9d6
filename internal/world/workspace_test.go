//go:build linux || darwin

package world

import (
	"os"
	"strings"
	"testing"

	"sluice/internal/job"
)

const workspaceSpec = `
workflow: {id: w, workspace: run, hooks: {after_run: "pwd -P >after.txt"}}
steps:
  - id: A
    run: "pwd -P >cwd.txt; git rev-parse --abbrev-ref HEAD >branch.txt; git add -A; git commit -q --allow-empty -m work"
    outputs: [branch.txt]
    success_criterion: test -f cwd.txt exits 0
    gate: G
gates:
  - {id: G, reviewer: {level: auto, run: "pwd -P >gate.txt"}, on_pass: {next_step: DONE}}
`

const space1 = ".workflow/worktrees/w-1"

// inSpace has a job be of a run with a worktree of its own.
func inSpace(j job.Job, space string) job.Job {
	j.RunInfo.Workspace = space
	if j.Attempt != nil {
		j.Attempt.Worktree, j.Attempt.Tree = space, space
	}
	return j
}

func TestWorkspaceIsWhereTheRunWorks(t *testing.T) {
	b := newBench(t, workspaceSpec)
	b.put("README.md", "the person's\n")
	b.put("untracked", "the person's\n")
	before := b.sh("git status --porcelain; git rev-parse HEAD main")
	if ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if ev := b.carry(inSpace(b.checkJob("A", 1), space1)); ev.Check == nil || !ev.Check.OK {
		t.Fatalf("%+v %+v", ev, ev.Check)
	}
	b.carry(inSpace(b.reviewJob("G", 1), space1))
	for file, want := range map[string]string{"cwd.txt": b.path(space1), "gate.txt": b.path(space1), "branch.txt": "sluice/w-1", "README.md": "hello"} {
		if got := strings.TrimSpace(b.get(space1 + "/" + file)); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if got := b.sh("git status --porcelain; git rev-parse HEAD main"); got != before {
		t.Errorf("the person's checkout was\n%s\nand is\n%s", before, got)
	}
	if base := b.sh("git rev-parse refs/sluice/base/w-1"); base != b.sh("git rev-parse main") {
		t.Errorf("base %s", base)
	}
	other := ".workflow/worktrees/w-2"
	if ev := b.carry(inSpace(b.stepJob("A", 2, 1), other)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if got := strings.TrimSpace(b.get(other + "/branch.txt")); got != "sluice/w-2" {
		t.Errorf("branch of the second: %q", got)
	}
	if got := b.e.Home(inSpace(b.stepJob("A", 1, 1), space1)); got != b.path(space1) {
		t.Errorf("home %s", got)
	}
}

func TestWorkspaceOfASubfolder(t *testing.T) {
	b := newBench(t, workspaceSpec)
	b.put("sub/file", "x\n")
	b.sh("git add -A && git commit -q -m sub")
	b.e.Close()
	b.e = b.executor(func(o *Options) { o.Root = b.path("sub") })
	if ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if got, want := strings.TrimSpace(b.get("sub/"+space1+"/sub/cwd.txt")), b.path("sub/"+space1+"/sub"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWorkspaceTakesNoBranchOfAnother(t *testing.T) {
	b := newBench(t, workspaceSpec)
	b.sh("git branch sluice/w-1")
	if ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1)); !strings.Contains(ev.Exit.NotStarted, "branch sluice/w-1 exists and is not this run's: rename it with git branch -m") {
		t.Fatalf("%+v", ev.Exit)
	}
	if b.has(space1) {
		t.Error("the worktree was made")
	}
	b.sh("git branch -m sluice/w-1 mine")
	if ev := b.carry(inSpace(b.stepJob("A", 2, 1), space1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	// A folder that a person removed is made again, with what the branch has.
	if err := os.RemoveAll(b.path(space1)); err != nil {
		t.Fatal(err)
	}
	b.sh("git worktree prune")
	if ev := b.carry(inSpace(b.stepJob("A", 3, 1), space1)); ev.Exit.Code != 0 || !b.has(space1+"/cwd.txt") {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
}

func TestWorkspaceTakesNoFolderOfAnother(t *testing.T) {
	b := newBench(t, workspaceSpec)
	b.put(space1+"/left", "by a run of an earlier record\n")
	ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1))
	if want := space1 + " exists and is not this run's: move it away"; !strings.Contains(ev.Exit.NotStarted, want) {
		t.Fatalf("%+v", ev.Exit)
	}
	b.sh("mv " + space1 + " away")
	if ev := b.carry(inSpace(b.stepJob("A", 2, 1), space1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
}

func TestWorkspaceWithoutACommit(t *testing.T) {
	b := newBench(t, workspaceSpec)
	b.sh("git update-ref -d refs/heads/main")
	if ev := b.carry(inSpace(b.stepJob("A", 1, 1), space1)); !strings.Contains(ev.Exit.NotStarted, "make a first one with git commit") {
		t.Fatalf("%+v", ev.Exit)
	}
}
