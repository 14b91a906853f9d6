package folders

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// baseRefs keep the commits from which runs began.
const baseRefs = "refs/sluice/base/"

// workspace is the record of a run's own worktree, written before its branch: without it, a branch
// of that name is somebody else's.
type workspace struct {
	Base string `json:"base"`
	Onto string `json:"onto,omitempty"` // the full name of the branch in the person's checkout
}

func workspaceFile(l layout.Layout, run string) string {
	return filepath.Join(l.State, "workspaces", layout.PathElement(run))
}

// Onto returns the full name of the branch that was checked out when a run with a worktree of its
// own began; "" if none was.
func (x *places) Onto(run string) (string, error) {
	var begun workspace
	err := layout.Load(workspaceFile(x.Layout, run), &begun)
	return begun.Onto, err
}

// openWorkspace creates the branch of a run's worktree, from HEAD of the person's checkout, and its
// parent folder, which git ignores. The run's existing worktree is left alone.
func (x *places) openWorkspace(ctx context.Context, wt string) error {
	dir, err := x.Below(wt)
	if err != nil {
		return job.Refused("workspace %s: %v", wt, err)
	}
	run, branch := path.Base(wt), git.BranchRefs+engine.WorkspaceBranch(wt)
	file := workspaceFile(x.Layout, run)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return job.Unready("%s exists and is not this run's: move it away", wt)
		}
		return nil
	}
	if err := x.MakeBelow(path.Dir(wt), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(filepath.Dir(dir), ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	var w workspace
	err = layout.Load(file, &w)
	if errors.Is(err, fs.ErrNotExist) {
		w, err = x.newWorkspace(ctx, branch)
		if err == nil {
			err = layout.Save(file, w)
		}
	}
	if err != nil {
		return err
	}
	for _, ref := range []string{baseRefs + run, branch} {
		if err := makeRef(ctx, x.opt.Git, ref, w.Base); err != nil {
			return health.PassingOr(err, job.Unready("workspace %s: %v", wt, err))
		}
	}
	return nil
}

// branchOff creates the branch of a step's own worktree, in a run that also has one: it begins with
// the run's passed work.
func (x *places) branchOff(ctx context.Context, j job.Job, wt, dir, branch string) error {
	own := j.RunInfo.Workspace
	if _, err := os.Lstat(dir); own == "" || wt == own || !x.opt.Git.Checkout() || err == nil {
		return nil
	}
	if err := x.openWorkspace(ctx, own); err != nil {
		return err
	}
	tip, err := x.opt.Git.TipOf(ctx, git.BranchRefs+engine.WorkspaceBranch(own))
	if err == nil && tip.SHA != "" {
		err = makeRef(ctx, x.opt.Git, git.BranchRefs+branch, tip.SHA)
	}
	if err != nil {
		return health.PassingOr(err, job.Unready("worktree %s: %v", wt, err))
	}
	return nil
}

func (x *places) newWorkspace(ctx context.Context, branch string) (w workspace, err error) {
	tip, err := x.opt.Git.TipOf(ctx, branch)
	if err != nil {
		return w, err
	}
	name := path.Base(branch)
	if tip.SHA != "" {
		return w, job.Unready("branch sluice/%s exists and is not this run's: rename it with git branch -m "+
			"sluice/%s NAME", name, name)
	}
	if w.Base, err = x.opt.Git.Head(ctx, x.opt.Git.Top()); err != nil {
		return w, err
	}
	if w.Base == "" {
		return w, job.Unready("the repo has no commit to make the branch sluice/%s of: make a first one with git commit",
			name)
	}
	w.Onto, err = tree.CheckedOut(ctx, x.opt.Git, x.opt.Git.Top())
	return w, err
}

func makeRef(ctx context.Context, repo *git.Repo, ref, sha string) error {
	tip, err := repo.TipOf(ctx, ref)
	if err != nil || tip.SHA != "" {
		return err
	}
	return repo.MoveRef(ctx, repo.Top(), ref, "", sha, "sluice: a run begins")
}

// Home returns the run's default folder: its worktree, or the root while there is none.
func (x *ground) Home(j job.Job) string {
	if j.RunInfo.Workspace == "" {
		return x.Root
	}
	dir, err := x.Below(j.RunInfo.Workspace)
	if err != nil {
		return x.Root
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return x.Root
	}
	return x.rootIn(dir)
}

// rootIn returns the folder in a worktree that corresponds to the root.
func (x *ground) rootIn(worktree string) string {
	if x.opt.Git == nil {
		return worktree
	}
	rel, inside := layout.Rel(x.opt.Git.Top(), x.Root)
	if !inside {
		return worktree
	}
	in := filepath.Join(worktree, rel)
	if info, err := os.Stat(in); err != nil || !info.IsDir() {
		return worktree
	}
	return in
}
