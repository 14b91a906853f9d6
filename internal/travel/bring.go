package travel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/atomicfile"
	"sluice/internal/cluster"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// localIn is how long the servers are asked for what this machine has made itself.
const localIn = 3 * time.Second

// Bring has the work of a run here that the journal names. A *Lacking error is for a person; any other
// is the machine's, or that of ctx.
func (w *Work) Bring(ctx context.Context, run string, work daemon.Work) error {
	defer w.one(run)()
	own, err := w.made(run, work)
	if err != nil {
		return err
	}
	here := own.results != nil
	asked := ctx
	if here {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, localIn)
		defer cancel()
	}
	err = w.bring(asked, run, work)
	if unfit := (*cluster.Unfit)(nil); here && errors.As(err, &unfit) && ctx.Err() == nil {
		return w.saveOne(ctx, run, own) // from before the journal had packs
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && here {
		return w.bring(ctx, run, work) // the servers do not answer: wait for them
	}
	return lacking(run, err)
}

func (w *Work) bring(ctx context.Context, run string, work daemon.Work) error {
	s, had, err := w.kept(run)
	if err != nil {
		return err
	}
	// The newest is most likely the newest result, or a move after it.
	ids := slices.Clone(work.Moved)
	slices.Reverse(ids)
	ids = slices.Concat(work.Digests[:1], ids, work.Digests[1:])
	for until := time.Now().Add(w.opt.Packs.Patience); ; {
		lacks := ""
		for _, id := range ids {
			digest, err := w.opt.Packs.Named(ctx, nameOf(run, id))
			if err != nil {
				return err
			}
			if digest == had && s.lacks(work) == "" {
				return nil // this machine stored it, or has it already
			}
			stored, err := w.sheetOf(ctx, run, digest)
			if err != nil {
				return err
			}
			if lacks = stored.lacks(work); lacks == "" {
				return w.replaceBy(ctx, stored, digest, had == "")
			}
		}
		if time.Now().After(until) {
			return &cluster.Unfit{Name: run, Why: fmt.Sprintf("what is stored lacks %.80s", lacks)}
		}
		if !health.Wait(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// replaceBy has here what a sheet has. Until all of it is, the sheet kept here has nothing.
func (w *Work) replaceBy(ctx context.Context, s sheet, digest string, first bool) error {
	if first {
		if err := w.keep(sheet{Run: s.Run}, ""); err != nil {
			return err
		}
	}
	if err := w.unpack(ctx, s, first); err != nil {
		return err
	}
	return w.keep(s, digest)
}

// made returns what this machine has made of a run and those below it, if that is all that the journal
// names: what it has stored itself, or has done since before the journal had packs.
func (w *Work) made(root string, work daemon.Work) (own did, err error) {
	s, _, err := w.kept(root)
	if err != nil || layout.IsFile(w.keptFile(root)) && s.lacks(work) != "" {
		return did{}, err
	}
	for _, run := range append(slices.DeleteFunc(s.Runs, func(run string) bool { return run == root }), root) {
		files, err := atomicfile.Glob(filepath.Join(w.opt.State, layout.AttemptsDir, layout.PathElement(run)), "*.files")
		if err != nil {
			return did{}, err
		}
		for _, file := range files {
			var c tree.Covered
			step, n, _ := cutLast(strings.TrimSuffix(filepath.Base(file), ".files"))
			if err := layout.Load(file, &c); err == nil && c.ID() != "" && n > 0 {
				own.results = append(own.results, result{run, step, n, c.ID()})
			}
		}
	}
	for _, d := range work.Digests {
		if !slices.ContainsFunc(own.results, func(r result) bool { return r.digest == d }) {
			return did{}, nil
		}
	}
	own.results = slices.DeleteFunc(own.results, func(r result) bool { return !slices.Contains(work.Digests, r.digest) })
	slices.SortFunc(own.results, func(a, b result) int { // as saved one after another
		return cmp.Compare(slices.Index(work.Digests, b.digest), slices.Index(work.Digests, a.digest))
	})
	own.moved = work.Moved
	return own, nil
}

// cutLast splits "X-1.2" into the step and the attempt.
func cutLast(name string) (step string, n int, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, 0, false
	}
	n, err := strconv.Atoi(name[i+1:])
	return name[:i], n, err == nil
}

// Lacking is why the work of a run is not here.
type Lacking struct {
	Run string
	Why error
}

func (l *Lacking) Error() string {
	return fmt.Sprintf("the work of %s is not on this machine: %v", l.Run, l.Why)
}
func (l *Lacking) Unwrap() error { return l.Why }

// lacking makes a Lacking of what a person must see to.
func lacking(run string, err error) error {
	var unfit *cluster.Unfit
	var no *tree.Refused
	var do *fault.Error
	switch {
	case errors.As(err, &unfit):
		return &Lacking{run, unfit}
	case errors.As(err, &no), errors.As(err, &do):
		return &Lacking{run, err}
	}
	return err
}

// sheetOf reads a sheet.
func (w *Work) sheetOf(ctx context.Context, run, digest string) (s sheet, err error) {
	in, err := w.opt.Packs.Get(ctx, digest)
	if err != nil {
		return s, err
	}
	defer in.Close()
	if s, err = w.parse(in, run); err != nil {
		err = &cluster.Unfit{Name: digest, Why: err.Error()}
	}
	return s, err
}

// unpack takes in the commits that are not here, then the files, then the branch: a call after a crash
// does it again.
func (w *Work) unpack(ctx context.Context, s sheet, first bool) error {
	if w.opt.Git == nil {
		return fault.New("install git", "git is not installed here")
	}
	for _, p := range s.Packs {
		if err := w.take(ctx, s.Run, p); err != nil {
			return err
		}
	}
	if err := w.replace(s); err != nil {
		return err
	}
	for name, data := range s.Files {
		file := filepath.Join(w.opt.State, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := atomicfile.Write(file, data, 0o600); err != nil {
			return err
		}
	}
	for _, p := range s.Places {
		if err := w.setPlace(ctx, s, p, first); err != nil {
			return err
		}
	}
	return nil
}

// take takes in a commit, unless it is here.
func (w *Work) take(ctx context.Context, run string, p pack) error {
	tip, err := w.opt.Git.TipOf(ctx, p.Refs[0])
	if err != nil {
		return err
	}
	if tip.SHA != p.Commit || w.opt.Git.Whole(ctx, p.Commit) != nil {
		for _, base := range p.Bases {
			if err := w.opt.Git.Whole(ctx, base); errors.Is(err, git.ErrMissing) {
				return fault.New("run git fetch, then sluice resume "+run, "this clone lacks %.12s, its base commit", base)
			} else if err != nil {
				return err
			}
		}
		in, err := w.opt.Packs.Get(ctx, p.Object)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := tree.Bring(ctx, w.opt.Git, in, p.Refs[0], p.Commit, p.Bases...); err != nil {
			return err
		}
	}
	for _, ref := range p.Refs[1:] {
		if err := w.opt.Git.Keep(ctx, ref, p.Commit); err != nil {
			return err
		}
	}
	return nil
}

// setPlace puts a worktree of sluice's and its branch where they were. A branch of a person's is left
// alone, and must have the work.
func (w *Work) setPlace(ctx context.Context, s sheet, p place, first bool) error {
	if !w.opt.Git.Checkout() {
		return fault.New("do the run again", "%s is no git checkout: its files are on the other machine only", w.opt.Root)
	}
	if p.Tip == "" {
		return nil
	}
	tip, err := w.opt.Git.TipOf(ctx, p.Branch)
	if err != nil {
		return err
	}
	name := git.ShortBranch(p.Branch)
	if !p.Own {
		for _, commit := range []string{p.Tip, p.Taken} {
			has := false
			if tip.SHA != "" {
				has, err = w.opt.Git.Descends(ctx, tip.SHA, commit)
			}
			if err == nil && !has {
				err = fault.New(fmt.Sprintf("bring it there (git merge %.12s), then sluice resume %s; or sluice abort %s", commit,
					s.Run, s.Run), "it worked in a checkout of the other machine, and branch %s here lacks %.12s", name, commit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if tip.SHA == "" {
		tip.SHA = p.Tip
		err = w.opt.Git.MoveRef(ctx, w.opt.Git.Top(), p.Branch, "", p.Tip, "sluice: the work of another machine")
	}
	// Before the branch moves: a kill may have left half of the worktree, here or where it is made.
	switch {
	case err != nil:
	case !layout.IsDir(p.Top):
		err = w.makeWorktree(ctx, p.Top, name)
	case first:
		err = w.opt.Git.FillWorktree(ctx, p.Top)
	}
	if err == nil && tip.SHA != p.Tip {
		var why string
		_, why, err = tree.Advance{Branch: p.Branch, From: tip.SHA, To: p.Tip, Top: p.Top}.Do(ctx, w.opt.Git)
		if err == nil && why != "" {
			err = fault.New("fix that, then sluice resume "+s.Run, "branch %s is to move to %.12s: %s", name, p.Tip,
				why)
		}
	}
	if err != nil {
		return err
	}
	f := tree.Folder{Repo: w.opt.Git, Top: p.Top}
	_, err = f.Begin(ctx, tree.Order{Run: s.Run, Step: "brought", N: 1}, tree.Start{From: p.Taken})
	return err
}

// makeWorktree makes a worktree of a branch.
func (w *Work) makeWorktree(ctx context.Context, top, branch string) error {
	if err := w.opt.MakeDir(filepath.Dir(top), 0o755); err != nil {
		return err
	}
	if layout.Inside(filepath.Join(w.opt.Root, layout.WorkflowDir), top) {
		if err := atomicfile.Write(filepath.Join(filepath.Dir(top), ".gitignore"), []byte("*\n"), 0o644); err != nil {
			return err
		}
	}
	_, err := w.opt.Git.AddWorktree(ctx, top, branch)
	return err
}
