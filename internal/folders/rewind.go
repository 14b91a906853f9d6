package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Rewind removes the work of a vetoed attempt, and all that was built on it, from its branch. It
// returns why a person must do it.
func (x *branches) Rewind(ctx context.Context, j job.Job) string {
	return x.moveBranch(ctx, j, x.rewound, "%s.%d was vetoed, and its branch was not moved back")
}

func (x *branches) rewound(ctx context.Context, j job.Job) (string, error) {
	b, c, err := x.recorded(ctx, j)
	if err != nil {
		return "", err
	}
	if b.On == "" {
		return "", nil
	}
	r, err := x.holdFolder(ctx, j, b.Top)
	if err != nil {
		return "", err
	}
	defer r.unlock()
	tip, err := x.opt.Git.TipOf(ctx, b.On)
	if err != nil {
		return "", err
	}
	of, list := workOf(j), r.Moves
	for i, m := range list {
		list[i].Vetoed = m.Vetoed || m.within(of)
	}
	there := len(list)
	for there > 0 && list[there-1].From == tip.SHA && list[there-1].To != tip.SHA {
		there-- // given up for the veto, or taken back by a person
	}
	n := there
	for n > 0 && list[n-1].Vetoed {
		n--
	}
	back := tip.SHA
	if n < there {
		back = list[n].From
		if why, err := x.takenBack(ctx, j, b, tip.SHA, back, list[there-1].To); why != "" || err != nil {
			return why, err
		}
	} else {
		if n > 0 {
			back = list[n-1].To
		}
		on := slices.ContainsFunc(list[:n], func(m Move) bool { return m.within(of) })
		if !on && c.Taken.Commit != "" {
			if on, err = x.opt.Git.Descends(ctx, back, c.Taken.Commit); err != nil {
				return "", err
			}
		}
		switch {
		case on && n > 0:
			return fmt.Sprintf("%s has passed since and is built on it: undo it with git revert on %s if it is not to stay",
				list[n-1].Of, git.ShortBranch(b.On)), r.keep()
		case on || there == len(list) && c.Taken.Commit == "":
			return "", nil // it never got there, or the agent did it itself
		}
		if err := tree.Settle(ctx, x.opt.Git, b.Top); err != nil { // after a kill
			return "", err
		}
	}
	for _, m := range list[n:] {
		r.Back = append(r.Back, m.To)
	}
	if r.Moves = list[:n]; j.Write.Files {
		r.Passed, r.Work, r.Found[""] = back, attemptOf{}, b.Found
		r.Of, r.Taken, r.At = ofJob(j, j.Write.Step), c.Taken.Commit, back // continued by the next attempt
	}
	return "", r.keep()
}

// recorded returns how a vetoed attempt began, or where a list's tasks work, and what was taken of it.
func (x *branches) recorded(ctx context.Context, j job.Job) (b tree.Begin, c tree.Covered, err error) {
	for what, into := range map[string]any{layout.BeganFile: &b, layout.CheckedFile: &c} {
		err := layout.Load(x.AttemptFile(j.Run, j.Write.Step, j.Write.N, what), into)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a list has no work of its own
			return b, c, err
		}
	}
	if b.Top == "" {
		dir, err := x.Below(j.RunInfo.Workspace)
		if err != nil {
			return b, c, err
		}
		b.Top = dir
		b.On, err = tree.CheckedOut(ctx, x.opt.Git, dir)
		return b, c, err
	}
	return b, c, nil
}

// takenBack moves the branch from tip to back, where it was before moves that ended at to.
func (x *branches) takenBack(ctx context.Context, j job.Job, b tree.Begin, tip, back, to string) (string, error) {
	if tip == back {
		return "", tree.Settle(ctx, x.opt.Git, b.Top) // after a kill the index may be out of date
	}
	if tip != to {
		on, err := x.opt.Git.Descends(ctx, tip, to)
		if err != nil {
			return "", err
		}
		if !on || !j.Write.Files {
			return fmt.Sprintf("%s is at %.12s and not at %.12s: move it to %.12s with git reset", git.ShortBranch(b.On),
				tip, to, back), nil
		}
	}
	_, why, err := tree.Advance{Branch: b.On, From: tip, To: back, Top: b.Top}.Do(ctx, x.opt.Git)
	return why, err
}

// onVetoed returns a reason if work is built on commits that a late veto removed from the branch,
// and found them there: no judge of this work saw them.
func (x *branches) onVetoed(ctx context.Context, back []string, b tree.Begin, c tree.Covered,
	at string) (string, error) {
	for _, commit := range back {
		taken, err := x.opt.Git.Descends(ctx, c.Taken.Commit, commit)
		if err != nil {
			return "", err
		}
		if !taken {
			continue
		}
		found, err := x.opt.Git.Descends(ctx, c.Found, commit)
		if err != nil {
			return "", err
		}
		on, err := x.opt.Git.Descends(ctx, at, commit)
		if err != nil {
			return "", err
		}
		if found && !on { // nor has a later attempt of the vetoed step brought it
			return fmt.Sprintf("it is built on %.12s, which was vetoed: look at it with git log %s..%.12s, and run git merge "+
				"%.12s in %s if it is to stay",
				commit, git.ShortBranch(b.On), c.Taken.Commit, c.Taken.Commit, x.Shown(b.Top)), nil
		}
	}
	return "", nil
}
