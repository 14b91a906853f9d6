package folders

import (
	"context"
	"errors"
	"fmt"
	"path"

	"sluice/internal/job"
	"sluice/internal/tree"
)

// moveBranch moves a branch, and tries again on errors of the system. It returns why a person must
// do it, after what, a format of the step and the attempt.
func (x *branches) moveBranch(ctx context.Context, j job.Job, move func(context.Context, job.Job) (string, error),
	what string) (why string) {
	err := x.Persist(ctx, j.Key, func() (err error) {
		why, err = move(ctx, j)
		if errors.Is(err, tree.ErrBusy) {
			why, err = err.Error(), nil
		}
		return err
	})
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		why = fmt.Sprintf(what+": %s", j.Write.Step, j.Write.N, why)
	}
	return why
}

// workOf names the attempts of a write, its own first.
func workOf(j job.Job) []string {
	run := j.Run
	if c := j.RunInfo.Child; c != nil {
		run = c.Dir
	}
	all := []string{path.Join(run, fmt.Sprintf("%s.%d", j.Write.Step, j.Write.N))}
	for _, w := range j.Write.With {
		all = append(all, path.Join(run, w))
	}
	return all
}

// moving records that a branch is about to move from at, or that an unheld agent moved it. Recorded
// moves that did not happen are removed.
func (x *branches) moving(ctx context.Context, j job.Job, r *heldRecord, b tree.Begin, at, to string) error {
	list := r.Moves
	m := Move{Of: workOf(j)[0], From: at, To: to}
	for n := len(list); ; n-- {
		before := b.Head
		if n > 0 {
			before = list[n-1].To
			if list[n-1].Of == m.Of && before == to {
				return nil
			}
		}
		on, err := x.opt.Git.Descends(ctx, at, before)
		if err != nil {
			return err
		}
		if on {
			m.From = before
		}
		if on || n == 0 {
			r.Moves = append(list[:n], m)
			return r.keep()
		}
	}
}
