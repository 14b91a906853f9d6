package folders

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// WorkOf returns what a run of the repo at root has made, for landing it.
func WorkOf(root string, m job.Made) tree.Work {
	w := tree.Work{Run: m.Run, Title: text.Line(m.Title), Dir: filepath.Join(root, filepath.FromSlash(m.Workspace)),
		Shown: m.Workspace, Branch: m.Branch, Typed: "sluice land " + m.Run}
	for _, d := range m.Did {
		w.Did = append(w.Did, text.Clip(text.Line(d.Step+": "+d.Summary), mostDid))
	}
	for _, q := range m.Rounds {
		content := tree.CommitIn(q.Digest)
		w.Judged = w.Judged || content != ""
		if q.State != engine.Approved {
			continue
		}
		if !q.All {
			content = ""
		}
		w.Passed = append(w.Passed,
			tree.Passed{Gate: text.Line(q.Gate), Outcome: text.Line(cmp.Or(q.Outcome, engine.OutcomePass)),
				Who:     passedBy(q.Round),
				Content: content, Own: q.Worktree == m.Workspace, Said: q.Said})
	}
	return w
}

// mostDid is how many bytes of a commit's message one step fills.
const mostDid = 200

// passedBy names who passed a round.
func passedBy(q engine.Round) string {
	if q.By == nil || q.By.Who == "" {
		return text.Line(q.ByKind)
	}
	if q.By.Trust == "" {
		return text.Line(q.By.Who)
	}
	return text.Line(q.By.Who) + " (" + text.Line(q.By.Trust) + ")"
}

// Land lands a run's work as its spec says, and returns why it could not.
func (x *branches) Land(ctx context.Context, j job.Job) (why string) {
	err := x.Persist(ctx, j.Key, func() error { return x.landed(ctx, j) })
	if err == nil {
		return ""
	}
	return err.Error()
}

func (x *branches) landed(ctx context.Context, j job.Job) error {
	w := WorkOf(x.Root, *j.Made)
	if how := j.Spec.OnDone.Land; how != "" {
		if err := x.landOn(ctx, j, w, how); err != nil {
			return err
		}
	}
	if !j.Spec.OnDone.Close {
		return nil
	}
	why, err := tree.Close(ctx, x.opt.Git, w.Dir)
	if err == nil && why != "" {
		err = &tree.Stuck{Why: "the worktree stays: " + why, Do: "then `sluice land " + w.Run + " --close`"}
	}
	return err
}

func (x *branches) landOn(ctx context.Context, j job.Job, w tree.Work, how string) error {
	var begun workspace
	if err := layout.Load(workspaceFile(x.Layout, w.Run), &begun); err != nil {
		return err
	}
	if begun.Onto == "" {
		return &tree.Stuck{Why: "no branch was checked out when the run began", Do: "sluice land " + w.Run + " --onto BRANCH"}
	}
	tip, err := x.opt.Git.TipOf(ctx, git.BranchRefs+w.Branch)
	if err != nil {
		return err
	}
	if tip.SHA == begun.Base && len(w.Uncommitted(ctx, x.opt.Git)) == 0 {
		return nil // it has changed nothing
	}
	if how != engine.LandPR {
		x.landing.Lock()
		defer x.landing.Unlock()
	}
	l, err := w.Landing(ctx, x.opt.Git, begun.Onto, how, "")
	if err != nil {
		return err
	}
	if how == engine.LandPR {
		return x.opt.Request(ctx, j, w, l)
	}
	_, err = w.Land(ctx, x.opt.Git, l)
	if errors.Is(err, tree.ErrBusy) {
		err = &tree.Stuck{Why: err.Error(), Do: "then sluice land " + w.Run}
	}
	return err
}
