package executor

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// first is how a folder was before anything of a run worked in it. What decides is compared with it in each attempt.
type first struct {
	Found string     `json:"found,omitempty"`
	Odd   []tree.Odd `json:"odd,omitempty"`
}

// firstFile is where that is recorded. A task's run is part of the run it belongs to.
func (e *Executor) firstFile(job daemon.Job, top string) string {
	run := job.Run
	if c := job.RunInfo.Child; c != nil {
		run, _, _ = strings.Cut(c.Dir, "/")
	}
	return filepath.Join(e.opt.State, attemptsDir, plain(run), "first-"+hexSum([]byte(top))[:16])
}

// folder is where an attempt works, as package tree takes it.
func (e *Executor) folder(b begin) tree.Folder {
	own := slices.Clone(b.Lists)
	for _, base := range []string{e.root, b.Top} {
		rel, err := filepath.Rel(b.Top, base)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, name := range ownFolders() {
			own = append(own, path.Join(filepath.ToSlash(rel), ".workflow", name))
		}
	}
	slices.Sort(own)
	return tree.Folder{Repo: e.opt.Git, Top: b.Top, Own: slices.Compact(own)}
}

// foundTree takes the folder as it is before an attempt.
func (e *Executor) foundTree(ctx context.Context, job daemon.Job, b begin, o tree.Order) (string, error) {
	f := e.folder(b)
	commit, err := f.Find(ctx, o)
	if err != nil {
		if ctx.Err() != nil || passing(err) {
			return "", err
		}
		return "", noGit(e.shown(b.Top), err)
	}
	file := e.firstFile(job, b.Top)
	var had first
	if err := kept(file, &had); !errors.Is(err, fs.ErrNotExist) {
		return commit, err
	}
	odd, _, err := f.Odd(ctx)
	if err != nil {
		return "", err
	}
	return commit, keep(file, first{Found: commit, Odd: odd})
}

// taken takes the work of an attempt, once for each check of it, and names what it changed of the law.
func (e *Executor) taken(ctx context.Context, job daemon.Job, st *engine.Step, b begin, outs []string) (covered, []string, error) {
	c := coveredOf(b, outs)
	if b.Top == "" {
		return c, nil, nil
	}
	var before first
	if err := kept(e.firstFile(job, b.Top), &before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, nil, err
	}
	var had covered
	if kept(e.attemptFile(job.Run, st.ID, job.Attempt.N, "files"), &had) == nil && had.Key == job.Key && had.Taken.Commit != "" {
		protected, err := e.law(ctx, job, before, had, outs)
		return had, protected, err // before a crash: what the check's commands wrote since is no work
	}
	o := tree.Order{Run: job.Run, Step: st.ID, N: job.Attempt.N, Base: b.Head, Found: b.Found}
	err := e.persist(ctx, job.Key, func() (err error) {
		tip, err := e.opt.Git.Head(ctx, b.Top)
		if err != nil {
			return err
		}
		if c.Taken, err = e.folder(b).Take(ctx, o, tip, before.Odd); err != nil {
			return err
		}
		return e.changes(ctx, job, st, b, &c)
	})
	if err != nil {
		return c, nil, err
	}
	c.Key = job.Key
	if err := keep(e.attemptFile(job.Run, st.ID, job.Attempt.N, "files"), c); err != nil {
		return c, nil, err
	}
	protected, err := e.law(ctx, job, before, c, outs)
	return c, protected, err
}

// coveredOf sorts what a step declares as its outputs.
func coveredOf(b begin, outs []string) covered {
	c := covered{Dir: b.Dir, Top: b.Top, Found: b.Found}
	for _, p := range outs {
		p = path.Clean(filepath.ToSlash(p))
		switch {
		case !filepath.IsLocal(filepath.FromSlash(p)): // does not hold anyway
		case isState(p):
			c.Root = append(c.Root, p)
		default:
			c.Made = append(c.Made, p)
		}
	}
	return c
}

// changes fills in which files the work changed, and what does not ship.
func (e *Executor) changes(ctx context.Context, job daemon.Job, st *engine.Step, b begin, c *covered) error {
	list, err := e.opt.Git.ChangesBetween(ctx, b.Found, c.Taken.Commit)
	if err != nil {
		return err
	}
	for _, ch := range list {
		c.Files = append(c.Files, ch.Path)
	}
	if len(c.Files) > git.MaxDigested/2 {
		c.Files = c.Files[:git.MaxDigested/2] // only whether the folder changed afterwards is looked at by these
	}
	if c.Tree, err = e.opt.Git.TreeOf(ctx, c.Taken.Commit); err != nil {
		return err
	}
	c.Taken.Beside, err = e.beside(ctx, b, c)
	return err
}

// beside are the declared outputs that are in no tree: those of .workflow/, and ignored ones.
func (e *Executor) beside(ctx context.Context, b begin, c *covered) ([]tree.Beside, error) {
	var fromTop []string
	for _, m := range c.Made {
		if rel, err := filepath.Rel(b.Top, filepath.Join(b.Dir, filepath.FromSlash(m))); err == nil && filepath.IsLocal(rel) {
			fromTop = append(fromTop, filepath.ToSlash(rel))
		}
	}
	ignored, err := e.opt.Git.Ignored(ctx, b.Top, fromTop)
	if err != nil {
		return nil, err
	}
	var out []tree.Beside
	add := func(base, file string) error {
		d, err := git.Digest(ctx, base, []string{file})
		out = append(out, tree.Beside{Path: file, Digest: d})
		return err
	}
	for _, f := range c.Root {
		if err := add(e.root, f); err != nil {
			return nil, err
		}
	}
	for _, f := range fromTop {
		if !ignored[f] {
			continue
		}
		if err := add(b.Top, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// law names what of the law differs from how it was before the run.
func (e *Executor) law(ctx context.Context, job daemon.Job, before first, c covered, outs []string) ([]string, error) {
	list, err := e.opt.Git.ChangesBetween(ctx, before.Found, c.Taken.Commit)
	if err != nil {
		return nil, err
	}
	files := make([]string, 0, len(list))
	for _, ch := range list {
		files = append(files, ch.Path)
	}
	return guarded(job.Spec, files, outs, judging{root: e.root, top: c.Top, dir: c.Dir}), nil
}
