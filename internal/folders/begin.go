package folders

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Begun returns the record of an attempt's beginning. If there is none it creates it, before
// anything else.
func (x *places) Begun(ctx context.Context, j job.Job, st *engine.Step, n int) (tree.Begin, error) {
	var b tree.Begin
	// Nobody asks what it has changed: the spec has everything.
	if !j.Attempt.Reads && st.Run != nil && !j.Checks(st) && !inGit(st) {
		b, err := x.place(ctx, j, st)
		if err == nil {
			err = x.beginAbove(ctx, j, b)
		}
		if err == nil {
			err = x.findRepos(ctx, j, &b)
		}
		if err == nil {
			err = x.noteUnchecked(ctx, j, st, n, b)
		}
		return b, err
	}
	file := x.AttemptFile(j.Run, st.ID, n, layout.BeganFile)
	err := layout.Load(file, &b)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if b, err = x.place(ctx, j, st); err != nil {
		return b, err
	}
	b.Lists = x.listsBelow(j, b.Top)
	if j.Attempt.Reads {
		err = x.looks(ctx, j, st, n, &b)
	} else {
		err = x.works(ctx, j, st, n, &b)
	}
	if err != nil {
		return b, err
	}
	return b, layout.Save(file, b)
}

// works sets what an attempt that may change its folder begins from.
func (x *places) works(ctx context.Context, j job.Job, st *engine.Step, n int, b *tree.Begin) error {
	if !j.Checks(st) {
		if err := x.noteUnchecked(ctx, j, st, n, *b); err != nil {
			return err
		}
	} else if b.Top != "" {
		if err := x.noteHead(ctx, b); err != nil {
			return err
		}
		if err := x.findFolder(ctx, j, st, n, b); err != nil {
			return x.noGit(ctx, b.Top, err)
		}
	}
	if err := x.findRepos(ctx, j, b); err != nil {
		return err
	}
	if err := x.beginRefs(ctx, j, st, b); err != nil {
		return err
	}
	if ctx.Err() != nil { // what was read may be incomplete
		return ctx.Err()
	}
	return x.beginAbove(ctx, j, *b)
}

// noteUnchecked marks that a step whose work is not taken works in a person's checkout: until the
// next taking its changes are nobody else's. The mark is not synced: an attempt whose end is not on
// record begins again, and marks again.
func (x *places) noteUnchecked(ctx context.Context, j job.Job, st *engine.Step, n int, b tree.Begin) error {
	if b.Top == "" || j.RunInfo.Workspace != "" {
		return nil
	}
	mark := x.recordFile(j, uncheckedMark, b.Top)
	switch {
	case !layout.IsFile(x.recordFile(j, folderRecord, b.Top)):
		return x.noteFirst(ctx, j, st, n, b)
	case layout.IsFile(mark):
		return nil
	}
	return os.WriteFile(mark, nil, 0o600)
}

// noteFirst keeps how the folder was before the run's first work there. Later work is compared with it.
func (x *places) noteFirst(ctx context.Context, j job.Job, st *engine.Step, n int, b tree.Begin) error {
	if !j.ChecksAny() {
		return nil
	}
	if err := x.noteHead(ctx, &b); err != nil {
		return err
	}
	r, err := x.holdFolder(ctx, j, b.Top)
	if err != nil {
		return err
	}
	defer r.unlock()
	x.writing.RLock()
	defer x.writing.RUnlock()
	was, err := x.before(ctx, j, b, tree.Order{Run: j.Run, Step: st.ID, N: n, Base: b.Head, Branch: b.On})
	if err != nil {
		return x.noGit(ctx, b.Top, err)
	}
	if r.First == nil {
		r.First = &was
	}
	return r.keep()
}

// findRepos notes the repositories inside the folder from before the run's work there: they are no
// part of it.
func (x *places) findRepos(ctx context.Context, j job.Job, b *tree.Begin) error {
	if b.Top == "" || !x.opt.Held() {
		return nil
	}
	r, err := x.record(j, b.Top)
	if err != nil {
		return err
	}
	if r.First != nil {
		b.Repos = tree.Repos(r.First.Odd)
		return nil
	}
	record := x.recordFile(j, reposRecord, b.Top)
	if err := layout.Load(record, &b.Repos); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f := tree.Folder{Repo: x.opt.Git, Top: b.Top, Own: x.OwnPaths(*b)}
	if b.Repos, err = f.ReposNow(ctx); err != nil {
		return x.noGit(ctx, b.Top, err)
	}
	return layout.Save(record, b.Repos)
}

// noteHead notes the HEAD of the folder, and its branch.
func (x *ground) noteHead(ctx context.Context, b *tree.Begin) (err error) {
	if b.Head, err = x.opt.Git.Head(ctx, b.Top); err != nil {
		return x.noGit(ctx, b.Top, err)
	}
	b.On, err = tree.CheckedOut(ctx, x.opt.Git, b.Top)
	return err
}

// noGit refuses an attempt whose folder git cannot read, unless that may pass. An error that refuses
// it already says more.
func (x *ground) noGit(ctx context.Context, top string, err error) error {
	if _, refused := errors.AsType[*job.Refusal](err); refused || ctx.Err() != nil || health.Passing(err) {
		return err
	}
	return job.NoGit(x.Shown(top), err)
}

// beginAbove creates the record of the attempt whose child run this is, at the first work of that run
// in the same folder: the work is the attempt's too.
func (x *places) beginAbove(ctx context.Context, j job.Job, b tree.Begin) error {
	c := j.RunInfo.Child
	if c == nil || c.Task != "" || b.Top == "" || j.Attempt.Worktree != j.RunInfo.Workspace {
		return nil
	}
	file := x.AttemptFile(c.Parent, c.Step, c.N, layout.BeganFile)
	if layout.IsFile(file) {
		return nil
	}
	above := tree.Begin{Dir: b.Dir, Top: b.Top, Own: b.Own, Branch: b.Branch, Head: b.Head, On: b.On, Found: b.Found,
		Lists: x.listsBelow(j, b.Top)}
	if above.Found == "" { // nobody judges this step
		if err := x.noteHead(ctx, &above); err != nil {
			return err
		}
		o := tree.Order{Run: c.Parent, Step: c.Step, N: c.N, Base: above.Head, Branch: above.On}
		was, err := x.before(ctx, j, above, o)
		if err != nil {
			return x.noGit(ctx, b.Top, err)
		}
		if above.Found = was.Found; above.Found == "" { // nothing is there yet
			return nil
		}
	}
	if err := x.opt.Git.Keep(ctx, git.Own("found", layout.AttemptName(c.Parent, c.Step, c.N)), above.Found); err != nil {
		return err
	}
	return layout.Save(file, above)
}

func (x *ground) listsBelow(j job.Job, top string) (out []string) {
	for _, l := range j.RunInfo.Lists {
		if rel, inside := layout.Rel(top, x.Path(l)); top != "" && inside {
			out = append(out, rel)
		}
	}
	return out
}

// inGit reports whether the step signals through git.
func inGit(st *engine.Step) bool {
	return st.Signal.Type == engine.SignalCommit || st.Signal.Type == engine.SignalPull
}

// beginRefs records what a new commit or pull request is compared with.
func (x *places) beginRefs(ctx context.Context, j job.Job, st *engine.Step, b *tree.Begin) error {
	if !x.opt.Git.Checkout() || !inGit(st) {
		return nil
	}
	var err error
	if b.Refs, err = x.opt.Git.Refs(ctx); err != nil {
		return err
	}
	if st.Signal.Type == engine.SignalPull && !job.StandsIn(j, st) {
		pulls, err := x.opt.Pulls(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			x.Note("pull requests", err.Error())
			return nil
		}
		b.Pulls, b.Asked = pulls, true
	}
	return nil
}

// place returns the folder of an attempt, and creates it if missing.
func (x *places) place(ctx context.Context, j job.Job, st *engine.Step) (tree.Begin, error) {
	b := tree.Begin{Dir: x.Root}
	if st.Agent != nil {
		b.Own = j.Attempt.Worktree != "" || st.Agent.Branch.Source != ""
		branch, err := st.Agent.Branch.String(j.Env)
		if err != nil {
			return b, job.Refused("branch: %v", err)
		}
		b.Branch = branch
	}
	if wt := j.Attempt.Worktree; wt != "" {
		// Several steps that only look may be first at once: they hold no worktree.
		x.placing.Lock()
		defer x.placing.Unlock()
		if wt == j.RunInfo.Workspace {
			if !x.opt.Git.Checkout() {
				return b, job.Unready("workspace: %s is not a git checkout to make a worktree of: take `workspace: run` out "+
					"of the spec", x.Root)
			}
			b.Own, b.Branch = true, engine.WorkspaceBranch(wt)
			if err := x.openWorkspace(ctx, wt); err != nil {
				return b, err
			}
		}
		b.Branch = cmp.Or(b.Branch, path.Base(wt))
		dir, err := x.Below(wt)
		if err != nil {
			return b, job.Refused("worktree %s: %v", wt, err)
		}
		if err := x.branchOff(ctx, j, wt, dir, b.Branch); err != nil {
			return b, err
		}
		if err := x.checkout(ctx, dir, b.Branch); err != nil {
			return b, err
		}
		if b.Dir = dir; wt == j.RunInfo.Workspace {
			b.Dir = x.rootIn(dir)
		}
	}
	real, err := atomicfile.RealPath(b.Dir)
	if err != nil {
		return b, job.Unready("worktree %s: %v", x.Shown(b.Dir), err)
	}
	if !x.ours(ctx, real) {
		return b, job.Refused("worktree %s: it is a link that leads out of the repo: name the folder itself", x.Shown(b.Dir))
	}
	if x.opt.Git != nil {
		b.Top, err = x.opt.Git.TopOf(real)
		if err != nil && j.Checks(st) {
			return b, job.NoGit(x.Shown(b.Dir), err)
		}
		if err == nil && job.InOwn(j) && layout.Inside(b.Top, x.Root) { // a person's checkout, which nobody resets
			return b, job.NoWorktree(j.RunInfo.Workspace)
		}
	}
	return b, nil
}

func (x *places) checkout(ctx context.Context, dir, branch string) error {
	info, err := os.Stat(dir)
	// A worktree is being made: one that a kill left half made is completed.
	mark := filepath.Join(x.State, "making", layout.HexSum([]byte(dir))[:32])
	switch {
	case err == nil && info.IsDir() && layout.IsFile(mark) && x.opt.Git.Checkout():
		// sluice was killed while it created this: nobody has worked in it.
		if err := x.opt.Git.FillWorktree(context.WithoutCancel(ctx), dir); err != nil {
			return health.PassingOr(err, job.Unready("worktree %s: sluice was killed while it made it, and it cannot be "+
				"completed: %v: remove the folder and run git worktree prune", x.Shown(dir), err))
		}
		return os.Remove(mark)
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return job.Refused("worktree %s: a file has this name: move it away", x.Shown(dir))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !x.opt.Git.Checkout():
		return job.Unready("worktree %s: it is not there, and %s is no git checkout to make it of: make the folder, or "+
			"run git init", x.Shown(dir), x.Root)
	}
	if err := x.There(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Not interrupted: half a checkout would pass for a whole one. The mark covers a kill.
	if err := layout.Save(mark, map[string]string{"dir": dir}); err != nil {
		return err
	}
	if _, err := x.opt.Git.AddWorktree(context.WithoutCancel(ctx), dir, branch); err != nil {
		return health.PassingOr(err, job.Unready("%v", err))
	}
	return os.Remove(mark)
}

// ours reports whether a real path is in the root or one of the repo's worktrees.
func (x *places) ours(ctx context.Context, real string) bool {
	if layout.Inside(x.Root, real) {
		return true
	}
	if !x.opt.Git.Checkout() {
		return false
	}
	trees, err := x.opt.Git.Worktrees(ctx)
	return err == nil && slices.ContainsFunc(trees, func(t git.Worktree) bool { return layout.Inside(t.Path, real) })
}

// Trees returns the checkout key of each existing worktree of the spec: "." for the root's own, and
// the path from the root for one below it. A worktree to be created has its path as its key.
func (x *ground) Trees(ctx context.Context, spec *engine.Spec) map[string]string {
	out := map[string]string{}
	root, err := git.Toplevel(x.Root)
	if err != nil {
		root = x.Root
	}
	var steps []*engine.Step
	for _, w := range spec.All() {
		steps = append(steps, w.Steps...)
	}
	for _, st := range steps {
		if st.Agent == nil || st.Agent.Worktree.Source == "" || st.Agent.Worktree.Eval != nil || ctx.Err() != nil {
			continue
		}
		wt := path.Clean(st.Agent.Worktree.Source)
		if wt == "." || !filepath.IsLocal(filepath.FromSlash(wt)) {
			continue
		}
		key, err := git.Toplevel(x.Path(wt))
		switch {
		case err == nil && key == root:
			out[wt] = "."
		case err == nil:
			out[wt] = key
			if rel, inside := layout.Rel(x.Root, key); inside {
				out[wt] = rel
			}
		}
	}
	return out
}
