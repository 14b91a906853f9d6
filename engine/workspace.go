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
	// WorkspaceDir is the folder of the runs' worktrees. A launch sees only its own.
	WorkspaceDir = ".workflow/worktrees"
	// branchPrefix begins the branches of runs.
	branchPrefix = "sluice/"
)

// OnDone is what happens to the work of a completed run with its own worktree.
type OnDone struct {
	Land  string  // LandSquash, ...; "" = a person lands it
	Close bool    // remove the worktree
	Pull  *PullAs // nil = the defaults
}

// Opens returns how the pull request is opened.
func (o OnDone) Opens() PullAs {
	if o.Pull == nil {
		return PullAs{}
	}
	return *o.Pull
}

// PullAs is how the run's pull request is opened.
type PullAs struct {
	Labels    []string
	Reviewers []string // logins, and ORG/TEAM
	Draft     bool     // until the work stands at the last gate
}

// Ways to land a run's work automatically.
const (
	LandSquash = "squash"
	LandMerge  = "merge"
	LandFF     = "ff"
	LandPR     = "pr"
)

// workspace returns the run's own worktree, or "" if the spec wants none.
func workspace(w *Spec, run string) string {
	if w.Workspace != WorkspaceRun {
		return ""
	}
	return WorkspaceDir + "/" + run
}

// WorkspaceBranch returns the short branch name of a workspace, or "".
func WorkspaceBranch(workspace string) string {
	if workspace == "" {
		return ""
	}
	return branchPrefix + path.Base(workspace)
}

// below returns the path of the run's file relative to the root. Files in .workflow/ are always the
// root's.
func (r *Run) below(file string) string {
	first, _, _ := strings.Cut(path.Clean(file), "/")
	if r.Workspace == "" || strings.EqualFold(first, ".workflow") {
		return file
	}
	return path.Join(r.Workspace, file)
}
