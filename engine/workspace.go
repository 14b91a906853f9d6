package engine

import (
	"path"
	"strings"
)

const (
	// WorkspaceRun gives each run a worktree and a branch of its own.
	WorkspaceRun = "run"
	// WorkspaceCheckout has the run work in the person's checkout. It is the default.
	WorkspaceCheckout = "checkout"
	// WorkspaceDir is where the worktrees of runs are. No launch sees any but its own.
	WorkspaceDir = ".workflow/worktrees"
	// branchPrefix begins the branches of runs.
	branchPrefix = "sluice/"
)

// OnDone is what becomes of the work of a run with a worktree of its own once it has completed.
type OnDone struct {
	Land  string // LandSquash, ...; "" = a person lands it
	Close bool   // the worktree is removed
}

// Ways to land a run's work by itself.
const (
	LandSquash = "squash"
	LandMerge  = "merge"
	LandFF     = "ff"
	LandPR     = "pr"
)

// workspace returns the worktree of a run of its own, "" where the spec wants none.
func workspace(w *Spec, run string) string {
	if w.Workspace != WorkspaceRun {
		return ""
	}
	return WorkspaceDir + "/" + run
}

// WorkspaceBranch returns the short name of the branch of a workspace, "" where there is none.
func WorkspaceBranch(workspace string) string {
	if workspace == "" {
		return ""
	}
	return branchPrefix + path.Base(workspace)
}

// below returns where a file of the run is, seen from the root. The files of .workflow/ are the root's for all runs.
func (r *Run) below(file string) string {
	first, _, _ := strings.Cut(path.Clean(file), "/")
	if r.Workspace == "" || strings.EqualFold(first, ".workflow") {
		return file
	}
	return path.Join(r.Workspace, file)
}
