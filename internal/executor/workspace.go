package executor

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

// baseRefs is where the commits are kept that runs began from.
const baseRefs = "refs/sluice/base/"

// workspace is the record of a run's own worktree, made before its branch: a branch of that name without it is another's.
type workspace struct {
	Base string `json:"base"`
	Onto string `json:"onto,omitempty"` // the branch that the person's checkout was on, by its full name
}

func (e *Executor) workspaceFile(run string) string {
	return filepath.Join(e.State, "workspaces", layout.PathElement(run))
}

// openWorkspace makes what a run's worktree is made of: the branch, from HEAD of the person's checkout, and the folder
// around, which git ignores. A worktree that is there is left as it is.
func (e *Executor) openWorkspace(ctx context.Context, wt string) error {
	dir, err := e.Below(wt)
	if err != nil {
		return job.Refused("workspace %s: %v", wt, err)
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := e.MakeBelow(path.Dir(wt), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(filepath.Dir(dir), ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	run, branch := path.Base(wt), "refs/heads/"+engine.WorkspaceBranch(wt)
	var w workspace
	file := e.workspaceFile(run)
	err = layout.Load(file, &w)
	if errors.Is(err, fs.ErrNotExist) {
		w, err = e.newWorkspace(ctx, branch)
		if err == nil {
			err = layout.Save(file, w)
		}
	}
	if err != nil {
		return err
	}
	for _, ref := range []string{baseRefs + run, branch} {
		if err := makeRef(ctx, e.opt.Git, ref, w.Base); err != nil {
			if health.Passing(err) {
				return err
			}
			return job.Unready("workspace %s: %v", wt, err)
		}
	}
	return nil
}

// branchOff makes the branch of a step's own worktree, in a run that has one too: it begins with what of the run has passed.
func (e *Executor) branchOff(ctx context.Context, j job.Job, wt, dir, branch string) error {
	own := j.RunInfo.Workspace
	if _, err := os.Lstat(dir); own == "" || wt == own || !e.opt.Git.Checkout() || err == nil {
		return nil
	}
	if err := e.openWorkspace(ctx, own); err != nil {
		return err
	}
	tip, err := e.opt.Git.TipOf(ctx, "refs/heads/"+engine.WorkspaceBranch(own))
	if err == nil && tip.SHA != "" {
		err = makeRef(ctx, e.opt.Git, "refs/heads/"+branch, tip.SHA)
	}
	if err != nil && !health.Passing(err) {
		return job.Unready("worktree %s: %v", wt, err)
	}
	return err
}

// newWorkspace looks where the branch of a run begins.
func (e *Executor) newWorkspace(ctx context.Context, branch string) (w workspace, err error) {
	tip, err := e.opt.Git.TipOf(ctx, branch)
	if err != nil {
		return w, err
	}
	name := path.Base(branch)
	if tip.SHA != "" {
		return w, job.Unready("branch sluice/%s exists and is not this run's: rename it with git branch -m sluice/%s NAME", name, name)
	}
	if w.Base, err = e.opt.Git.Head(ctx, e.opt.Git.Top()); err != nil {
		return w, err
	}
	if w.Base == "" {
		return w, job.Unready("the repo has no commit to make the branch sluice/%s of: make a first one with git commit", name)
	}
	w.Onto, err = tree.CheckedOut(ctx, e.opt.Git, e.opt.Git.Top())
	return w, err
}

// makeRef makes a ref where it is missing.
func makeRef(ctx context.Context, repo *git.Repo, ref, sha string) error {
	tip, err := repo.TipOf(ctx, ref)
	if err != nil || tip.SHA != "" {
		return err
	}
	return repo.MoveRef(ctx, repo.Top(), ref, "", sha, "sluice: a run begins")
}

// home is the folder that the run works in, if no step says otherwise: its worktree, or the root where there is none (yet).
func (e *Executor) home(j job.Job) string {
	if j.RunInfo.Workspace == "" {
		return e.Root
	}
	dir, err := e.Below(j.RunInfo.Workspace)
	if err != nil {
		return e.Root
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return e.Root
	}
	return e.rootIn(dir)
}

// rootIn is the folder of a worktree that the root is of its own checkout.
func (e *Executor) rootIn(worktree string) string {
	if e.opt.Git == nil {
		return worktree
	}
	rel, err := filepath.Rel(e.opt.Git.Top(), e.Root)
	if err != nil || !filepath.IsLocal(rel) {
		return worktree
	}
	in := filepath.Join(worktree, rel)
	if info, err := os.Stat(in); err != nil || !info.IsDir() {
		return worktree
	}
	return in
}
