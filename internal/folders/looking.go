package folders

import (
	"cmp"
	"context"
	"slices"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// looks sets what a step that only looks sees: each attempt one commit.
func (x *places) looks(ctx context.Context, j job.Job, st *engine.Step, n int, b *tree.Begin) (err error) {
	if b.Top == "" || x.opt.Git == nil {
		return job.Unready("%s: a step that only looks (reads: true) sees what git has of it, and git is not "+
			"installed, or this is no checkout of its", x.Shown(b.Dir))
	}
	b.Look, b.Before, err = x.takenLast(ctx, j, st, *b)
	if err == nil {
		err = x.opt.Git.Keep(ctx, git.Own("found", layout.AttemptName(j.Run, st.ID, n)), b.Look)
	}
	if ctx.Err() != nil { // what was read may be incomplete
		return ctx.Err()
	}
	if err != nil {
		return x.noGit(ctx, b.Top, err)
	}
	b.Head, b.Found = b.Look, b.Look
	return nil
}

// takenLast returns the commit for a step that only looks: the folder's last taken work or, in the
// run's own worktree, what a step would begin from. Before the run's first work it is the folder as
// it was. before lacks unpassed work, for the setup of judges.
func (x *places) takenLast(ctx context.Context, j job.Job, st *engine.Step,
	b tree.Begin) (commit, before string, err error) {
	r, err := x.holdFolder(ctx, j, b.Top)
	if err != nil {
		return "", "", err
	}
	defer r.unlock()
	head, err := x.opt.Git.Head(ctx, b.Top)
	if err != nil {
		return "", "", err
	}
	switch {
	case job.InOwn(j) && r.First == nil:
		return head, head, x.hasJoined(ctx, j, head, nil)
	case job.InOwn(j):
		now := r.Record
		from, unpassed, join := x.startOf(j, st, head, &now)
		if before = from; unpassed {
			before = cmp.Or(r.Found[""], r.Passed, r.First.Found)
		}
		return from, before, x.hasJoined(ctx, j, from, join)
	case r.Taken != "":
		if before = r.Taken; !x.ofPassed(j, r.Of) {
			before = cmp.Or(r.Found[foundKey(j, r.Of.Step)], r.First.Found)
		}
		return r.Taken, before, nil
	case r.First != nil:
		return r.First.Found, r.First.Found, nil
	case r.Look != "":
		return r.Look, r.Look, nil
	}
	x.writing.RLock()
	defer x.writing.RUnlock()
	was, err := x.before(ctx, j, b, tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N, Base: head})
	if err != nil {
		return "", "", err
	}
	r.Look = was.Found
	return r.Look, r.Look, r.keep()
}

// ofPassed reports whether the step whose work was taken last has passed. It is false for another
// run's step, unknown here.
func (x *places) ofPassed(j job.Job, of attemptOf) bool {
	return of.Run == j.Run && j.Env != nil && j.Env.Steps[of.Step].Status == engine.Passed
}

// hasJoined refuses to look at the run's worktree while passed work of parallel steps is missing in
// it: a step that works there merges it.
func (x *places) hasJoined(ctx context.Context, j job.Job, from string, join []tree.Joining) error {
	for _, other := range x.withOthers(j, join) {
		in, err := x.opt.Git.Descends(ctx, from, other.Commit)
		if err != nil {
			return err
		}
		if !in {
			return job.Refused("it only looks (reads: true) at the run's worktree, in which %.12s, which has passed in "+
				"another, is not merged yet: have a step that works there come before it, or name the other worktree", other.Commit)
		}
	}
	return nil
}

// lookedAt is Taken for a step that only looked: what it saw, and the files that sluice wrote from
// its answer. law names the guarded ones.
func (x *takings) lookedAt(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin,
	c tree.Covered) (_ tree.Covered, law changed, err error) {
	c.Key = j.Key
	c.Taken = tree.Taken{Commit: b.Look}
	if c.Tree, err = x.opt.Git.TreeOf(ctx, b.Look); err != nil {
		return c, law, err
	}
	if c.Taken.Beside, err = x.beside(ctx, b, &c, nil); err != nil {
		return c, law, err
	}
	l, err := x.law(ctx, j, b)
	if err != nil {
		return c, law, err
	}
	for _, f := range c.Root {
		if at := layout.SeenFrom(b.Top, x.Path(f)); len(l.Guarded([]string{at}, nil)) > 0 {
			law.names, law.as = append(law.names, f), append(law.as, digestIn(c.Taken.Beside, f))
		}
	}
	return c, law, layout.Save(x.AttemptFile(j.Run, st.ID, j.Attempt.N, layout.CheckedFile), c)
}

func digestIn(files []tree.Beside, name string) string {
	if i := slices.IndexFunc(files, func(f tree.Beside) bool { return f.Path == name }); i >= 0 {
		return files[i].Digest
	}
	return ""
}
