package folders

import (
	"context"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Advance moves the branch of an attempt that has passed to what was taken of it. It returns why that is left to a person.
func (x *Folders) Advance(ctx context.Context, j job.Job) string {
	return x.moveBranch(ctx, j, x.advanced, "the work of %s.%d is kept, and its branch was not moved")
}

func (x *Folders) advanced(ctx context.Context, j job.Job) (string, error) {
	var b tree.Begin
	var c tree.Covered
	for what, into := range map[string]any{"begin": &b, "files": &c} {
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
	case r.Found[""] == c.Found: // others have worked on top of it: that has not passed
		r.Found[""] = c.Taken.Commit
	}
	if err := r.keep(); err != nil {
		return "", err
	}
	if b.On == "" || c.Taken.Commit == "" {
		return "", nil // there is no branch to move
	}
	at, err := x.opt.Git.TipOf(ctx, b.On)
	if err == nil && at.SHA == c.Taken.Commit {
		err = tree.Settle(ctx, x.opt.Git, b.Top) // of before a kill: the index may be left to do
	}
	if err != nil {
		return "", err
	}
	if at.SHA == c.Taken.Commit { // an agent that is not held has moved it itself, or this is a call after a kill
		return "", x.moving(ctx, j, r, b, at.SHA, at.SHA)
	}
	bases := []string{at.SHA}
	if j.RunInfo.Workspace == "" || b.On != "refs/heads/"+engine.WorkspaceBranch(j.RunInfo.Workspace) { // a person's own changes may lie in the folder: what was taken has them too, and the branch is not to have them
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
