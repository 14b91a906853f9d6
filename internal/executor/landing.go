package executor

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/tree"
	"sluice/internal/words"
)

// WorkOf is what a run of the repo at root has made, for those who land it.
func WorkOf(root string, r daemon.RunStatus) tree.Work {
	w := tree.Work{Run: r.ID, Title: words.Clean(r.Workflow), Dir: filepath.Join(root, filepath.FromSlash(r.Workspace)), Shown: r.Workspace, Branch: r.Branch}
	if r.Name != "" {
		w.Title = words.Clean(r.Name)
	}
	for _, st := range slices.Concat(r.Steps, r.Children) {
		for _, g := range st.Gates {
			for i, q := range g.Rounds {
				w.Judged = w.Judged || commitIn(q.Digest) != ""
				if q.State != engine.Approved {
					continue
				}
				p := passedBy(g, q, i == len(g.Rounds)-1)
				if !passedRow(st, q) {
					p.Content = ""
				}
				p.Own = st.Worktree == r.Workspace
				w.Passed = append(w.Passed, p)
			}
		}
	}
	return w
}

// passedRow says that all gates of a step have passed what a round was over.
func passedRow(st daemon.StepStatus, q engine.Round) bool {
	return !slices.ContainsFunc(st.Gates, func(g daemon.GateStatus) bool {
		return !slices.ContainsFunc(g.Rounds, func(o engine.Round) bool {
			return o.State == engine.Approved && o.Attempt == q.Attempt && o.Digest == q.Digest
		})
	})
}

func passedBy(g daemon.GateStatus, q engine.Round, newest bool) tree.Passed {
	p := tree.Passed{Gate: words.Clean(g.ID), Outcome: "pass", Who: words.Clean(q.ByKind), Said: newest && !g.Implicit}
	p.Content = commitIn(q.Digest)
	if q.Outcome != "" {
		p.Outcome = words.Clean(q.Outcome)
	}
	if q.By != nil && q.By.Who != "" {
		p.Who = words.Clean(q.By.Who)
		if q.By.Trust != "" {
			p.Who += " (" + words.Clean(q.By.Trust) + ")"
		}
	}
	return p
}

// land does with a run's work what its spec says, and returns why it could not.
func (e *Executor) land(ctx context.Context, job daemon.Job) (why string) {
	err := e.persist(ctx, job.Key, func() error { return e.landed(ctx, job) })
	if err == nil {
		return ""
	}
	return err.Error()
}

func (e *Executor) landed(ctx context.Context, job daemon.Job) error {
	w := WorkOf(e.root, *job.Status)
	if how := job.Spec.OnDone.Land; how != "" {
		if err := e.landOn(ctx, w, how); err != nil {
			return err
		}
	}
	if !job.Spec.OnDone.Close {
		return nil
	}
	why, err := tree.Close(ctx, e.opt.Git, w.Dir)
	if err == nil && why != "" {
		err = &tree.Stuck{Why: "the worktree stays: " + why, Do: "then `sluice land " + w.Run + " --close`"}
	}
	return err
}

func (e *Executor) landOn(ctx context.Context, w tree.Work, how string) error {
	var begun workspace
	if err := kept(e.workspaceFile(w.Run), &begun); err != nil {
		return err
	}
	if begun.Onto == "" {
		return &tree.Stuck{Why: "no branch was checked out when the run began", Do: "sluice land " + w.Run + " --onto BRANCH"}
	}
	tip, err := e.opt.Git.TipOf(ctx, "refs/heads/"+w.Branch)
	if err != nil {
		return err
	}
	if tip.SHA == begun.Base && len(w.Uncommitted(ctx, e.opt.Git)) == 0 {
		return nil // it has changed nothing
	}
	l, err := w.Landing(ctx, e.opt.Git, begun.Onto, how, "")
	if err != nil {
		return err
	}
	if how == engine.LandPR {
		_, err = w.Request(ctx, e.opt.Git, l, e.opt.Environ)
		return err
	}
	_, err = w.Land(ctx, e.opt.Git, l)
	if errors.Is(err, tree.ErrBusy) {
		err = &tree.Stuck{Why: err.Error(), Do: "then sluice land " + w.Run}
	}
	return err
}
