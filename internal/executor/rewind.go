package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/internal/tree"
)

// movesRecord is of a folder: how sluice has moved its branch, the last move at the end.
const movesRecord = "moves"

// move is one of them.
type move struct {
	Of   string `json:"of"` // the attempt whose work passed: RUN/STEP.N, a task's behind that of the step it is done for
	From string `json:"from"`
	To   string `json:"to"`
	// Vetoed: it was to be taken back, and what has passed since is built on it. It goes when that goes.
	Vetoed bool `json:"vetoed,omitempty"`
}

// within says that the work is that of one of the attempts, or of a run that is a part of it.
func (m move) within(all []string) bool {
	return slices.ContainsFunc(all, func(of string) bool { return m.Of == of || strings.HasPrefix(m.Of, of+"/") })
}

// workOf names the attempts that a write is about; its own is the first.
func workOf(job daemon.Job) []string {
	run := job.Run
	if c := job.RunInfo.Child; c != nil {
		run = c.Dir
	}
	all := []string{path.Join(run, fmt.Sprintf("%s.%d", job.Write.Step, job.Write.N))}
	for _, w := range job.Write.With {
		all = append(all, path.Join(run, w))
	}
	return all
}

func (e *Executor) moves(job daemon.Job, top string) (list []move, err error) {
	err = kept(e.folderRecord(job, movesRecord, top), &list)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// moving records that a branch is about to move from at, or was moved so by an agent that is not held. What was recorded
// before and did not happen is forgotten.
func (e *Executor) moving(ctx context.Context, job daemon.Job, b begin, at, to string) error {
	list, err := e.moves(job, b.Top)
	if err != nil {
		return err
	}
	m := move{Of: workOf(job)[0], From: at, To: to}
	for n := len(list); ; n-- {
		before := b.Head
		if n > 0 {
			before = list[n-1].To
			if list[n-1].Of == m.Of && before == to {
				return nil
			}
		}
		on, err := e.opt.Git.Descends(ctx, at, before)
		if err != nil {
			return err
		}
		if on {
			m.From = before
		}
		if on || n == 0 {
			return keep(e.folderRecord(job, movesRecord, b.Top), append(list[:n], m))
		}
	}
}

// rewind takes the work of an attempt that a person has vetoed off its branch, with all that was built on it. It returns why
// that is left to a person.
func (e *Executor) rewind(ctx context.Context, job daemon.Job) (why string) {
	err := e.persist(ctx, job.Key, func() (err error) {
		why, err = e.rewound(ctx, job)
		if errors.Is(err, tree.ErrBusy) {
			why, err = err.Error(), nil
		}
		return err
	})
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		why = fmt.Sprintf("%s.%d was vetoed, and its branch was not moved back: %s", job.Write.Step, job.Write.N, why)
	}
	return why
}

func (e *Executor) rewound(ctx context.Context, job daemon.Job) (string, error) {
	var b begin
	var c covered
	for what, into := range map[string]any{"begin": &b, "files": &c} {
		err := kept(e.attemptFile(job.Run, job.Write.Step, job.Write.N, what), into)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a list has no work of its own
			return "", err
		}
	}
	if b.Top == "" {
		dir, err := e.below(job.RunInfo.Workspace)
		if err != nil {
			return "", err
		}
		b.Top = dir
		if b.On, err = tree.CheckedOut(ctx, e.opt.Git, dir); err != nil {
			return "", err
		}
	}
	list, err := e.moves(job, b.Top)
	if err != nil || b.On == "" {
		return "", err
	}
	of, n := workOf(job), len(list)
	for i, m := range list {
		list[i].Vetoed = m.Vetoed || m.within(of)
	}
	for n > 0 && list[n-1].Vetoed {
		n--
	}
	if n == len(list) {
		if !slices.ContainsFunc(list, func(m move) bool { return m.within(of) }) {
			return "", nil // it never got there
		}
		return fmt.Sprintf("%s has passed since and is built on it: undo it with git revert on %s if it is not to stay", list[n-1].Of, short(b.On)),
			keep(e.folderRecord(job, movesRecord, b.Top), list)
	}
	back := list[n].From
	tip, err := e.opt.Git.TipOf(ctx, b.On)
	if err != nil {
		return "", err
	}
	if to := list[len(list)-1].To; tip.SHA != back && tip.SHA != to {
		on, err := e.opt.Git.Descends(ctx, tip.SHA, to)
		if err != nil {
			return "", err
		}
		if !on || !job.Write.Files {
			return fmt.Sprintf("%s is at %.12s and not at %.12s: move it to %.12s with git reset", short(b.On), tip.SHA, to, back), nil
		}
		if err := e.salvaged(ctx, job, b.Top); err != nil { // commits of an agent that is not held
			return "", err
		}
	}
	if tip.SHA != back {
		moved, why, err := tree.Advance{Branch: b.On, From: tip.SHA, To: back, Top: b.Top}.Do(ctx, e.opt.Git)
		if err != nil || !moved {
			return why, err
		}
	} else if err := tree.Settle(ctx, e.opt.Git, b.Top); err != nil { // of before a kill: the index may be left to do
		return "", err
	}
	if job.Write.Files {
		if err := e.asTaken(ctx, job, b, c, back); err != nil {
			return "", err
		}
	}
	return "", keep(e.folderRecord(job, movesRecord, b.Top), list[:n])
}

// maxSalvaged is how many states of a folder are kept of one veto.
const maxSalvaged = 9

// salvageRefs are where package git keeps what it salvages.
const salvageRefs = "refs/sluice/salvage/"

// salvaged keeps the files as they are before any goes. What was kept before is not replaced.
func (e *Executor) salvaged(ctx context.Context, job daemon.Job, top string) error {
	for n := 1; n <= maxSalvaged; n++ {
		name := fmt.Sprintf("%s/%s.%d-vetoed.%d", job.Run, job.Write.Step, job.Write.N, n)
		had, err := e.opt.Git.TipOf(ctx, salvageRefs+name)
		if err != nil {
			return err
		}
		if had.SHA == "" {
			_, err = e.opt.Git.Salvage(ctx, top, name, fmt.Sprintf("%s: the files as %s.%d was vetoed\n", job.Run, job.Write.Step, job.Write.N))
			return err
		}
	}
	return fmt.Errorf("%d states of %s are kept already: git for-each-ref %s%s", maxSalvaged, e.shown(top), salvageRefs, job.Run)
}

// asTaken makes the folder what it was when the attempt's work was taken: the next attempt goes on from there.
func (e *Executor) asTaken(ctx context.Context, job daemon.Job, b begin, c covered, back string) error {
	to := c.Taken.Commit
	if to == "" {
		to = back
	} else if err := errors.Join(keep(e.folderRecord(job, openRecord, b.Top), tree.Before{Found: b.Found}),
		keep(e.folderRecord(job, lastRecord, b.Top), last{At: back, Taken: to})); err != nil {
		return err
	}
	return tree.Folder{Repo: e.opt.Git, Top: b.Top, Own: e.ownPaths(b)}.Reset(ctx, to, func() error { return e.salvaged(ctx, job, b.Top) })
}

func short(branch string) string { return strings.TrimPrefix(branch, "refs/heads/") }
