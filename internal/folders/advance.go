package folders

import (
	"context"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Advance moves the branch to the taken work of an attempt that has passed. It returns why a person
// must do it.
func (x *branches) Advance(ctx context.Context, j job.Job) string {
	return x.moveBranch(ctx, j, x.advanced, "the work of %s.%d is kept, and its branch was not moved")
}

func (x *branches) advanced(ctx context.Context, j job.Job) (string, error) {
	var b tree.Begin
	var c tree.Covered
	for what, into := range map[string]any{layout.BeganFile: &b, layout.CheckedFile: &c} {
		if err := layout.Load(x.AttemptFile(j.Run, j.Write.Step, j.Write.N, what), into); err != nil {
			return "", err
		}
	}
	r, err := x.holdFolder(ctx, j, b.Top)
	if err != nil {
		return "", err
	}
	defer r.unlock()
	r.Passed = c.Taken.Commit
	switch {
	case r.Taken == c.Taken.Commit && r.Work == (attemptOf{}):
		delete(r.Found, "")
	case r.Found[""] == c.Found: // work that others built on top of it has not passed
		r.Found[""] = c.Taken.Commit
	}
	if err := r.keep(); err != nil {
		return "", err
	}
	if b.On == "" || c.Taken.Commit == "" {
		return "", nil // no branch to move
	}
	at, err := x.opt.Git.TipOf(ctx, b.On)
	if err == nil && at.SHA == c.Taken.Commit {
		err = tree.Settle(ctx, x.opt.Git, b.Top) // after a kill the index may be out of date
	}
	if err != nil {
		return "", err
	}
	if at.SHA == c.Taken.Commit { // an unheld agent's move, or a call after a kill
		return "", x.moving(ctx, j, r, b, at.SHA, at.SHA)
	}
	bases := []string{at.SHA}
	// A person's own changes may be in the folder: the taken work contains them, the branch must
	// not.
	if j.RunInfo.Workspace == "" || b.On != git.BranchRefs+engine.WorkspaceBranch(j.RunInfo.Workspace) {
		bases = append(bases, c.Found)
	}
	for _, base := range bases {
		if base == "" {
			continue
		}
		if ok, err := x.opt.Git.Descends(ctx, c.Taken.Commit, base); err != nil || !ok {
			return "", err
		}
	}
	if why, err := x.onVetoed(ctx, r.Back, b, c, at.SHA); err != nil || why != "" {
		return why, err
	}
	if err := x.moving(ctx, j, r, b, at.SHA, c.Taken.Commit); err != nil {
		return "", err
	}
	_, why, err := tree.Advance{Branch: b.On, From: at.SHA, To: c.Taken.Commit, Top: b.Top}.Do(ctx, x.opt.Git)
	return why, err
}
