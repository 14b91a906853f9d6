package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// begun gives the record of an attempt's beginning, made before anything else if there is none.
func (e *Executor) begun(ctx context.Context, j job.Job, st *engine.Step, n int) (tree.Begin, error) {
	var b tree.Begin
	if j.Attempt.Reads {
		return e.looks(ctx, j, st, n)
	}
	if st.Run != nil && !j.Checks(st) && !inGit(st) { // nobody asks what it has changed: the spec says all there is
		b, err := e.place(ctx, j, st)
		if err == nil {
			err = e.noteUnchecked(ctx, j, st, b.Top)
		}
		return b, err
	}
	file := e.AttemptFile(j.Run, st.ID, n, "begin")
	err := layout.Load(file, &b)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if b, err = e.place(ctx, j, st); err != nil {
		return b, err
	}
	if !j.Checks(st) {
		if err := e.noteUnchecked(ctx, j, st, b.Top); err != nil {
			return b, err
		}
	}
	if b.Top != "" && j.Checks(st) {
		if b.Head, err = e.opt.Git.Head(ctx, b.Top); err != nil {
			if ctx.Err() != nil || health.Passing(err) {
				return b, err
			}
			return b, noGit(e.Shown(b.Top), err)
		}
	}
	b.Lists = e.listsBelow(j, b.Top)
	if b.Top != "" && j.Checks(st) {
		if b.On, err = tree.CheckedOut(ctx, e.opt.Git, b.Top); err != nil {
			return b, err
		}
		if err := e.findFolder(ctx, j, st, n, &b); err != nil {
			if ctx.Err() != nil || health.Passing(err) {
				return b, err
			}
			return b, noGit(e.Shown(b.Top), err)
		}
	}
	if err := e.beginRefs(ctx, j, st, &b); err != nil {
		return b, err
	}
	if ctx.Err() != nil { // what was read may be cut short
		return b, ctx.Err()
	}
	return b, layout.Save(file, b)
}

// listsBelow names the task files of the run that lie in a checkout.
func (e *Executor) listsBelow(j job.Job, top string) (out []string) {
	for _, l := range j.RunInfo.Lists {
		if rel, err := filepath.Rel(top, filepath.Join(e.Root, filepath.FromSlash(l))); top != "" && err == nil && filepath.IsLocal(rel) {
			out = append(out, filepath.ToSlash(rel))
		}
	}
	return out
}

// inGit says that the step's word is to be found in git.
func inGit(st *engine.Step) bool {
	return st.Signal.Type == engine.SignalCommit || st.Signal.Type == engine.SignalPull
}

// beginRefs records what a new commit or pull request is told from.
func (e *Executor) beginRefs(ctx context.Context, j job.Job, st *engine.Step, b *tree.Begin) error {
	if !e.opt.Git.Checkout() || !inGit(st) {
		return nil
	}
	var err error
	if b.Refs, err = e.opt.Git.Refs(ctx); err != nil {
		return err
	}
	if st.Signal.Type == engine.SignalPull && !job.StandsIn(j, st) {
		pulls, err := e.refs.Pulls(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e.Note("pull requests", err.Error())
			return nil
		}
		b.Pulls, b.Asked = pulls, true
	}
	return nil
}

// place finds the folder an attempt works in, and makes it where it is not there.
func (e *Executor) place(ctx context.Context, j job.Job, st *engine.Step) (tree.Begin, error) {
	b := tree.Begin{Dir: e.Root}
	if st.Agent != nil {
		b.Own = j.Attempt.Worktree != "" || st.Agent.Branch.Source != ""
		branch, err := st.Agent.Branch.String(j.Env)
		if err != nil {
			return b, job.Refused("branch: %v", err)
		}
		b.Branch = branch
	}
	if wt := j.Attempt.Worktree; wt != "" {
		e.placing.Lock() // steps that only look hold no worktree: many may be the first at once
		defer e.placing.Unlock()
		if wt == j.RunInfo.Workspace {
			if !e.opt.Git.Checkout() {
				return b, job.Unready("workspace: %s is no git checkout to make a worktree of: take `workspace: run` out of the spec", e.Root)
			}
			b.Own, b.Branch = true, engine.WorkspaceBranch(wt)
			if err := e.openWorkspace(ctx, wt); err != nil {
				return b, err
			}
		}
		if b.Branch == "" {
			b.Branch = path.Base(wt)
		}
		dir, err := e.Below(wt)
		if err != nil {
			return b, job.Refused("worktree %s: %v", wt, err)
		}
		if err := e.branchOff(ctx, j, wt, dir, b.Branch); err != nil {
			return b, err
		}
		if err := e.checkout(ctx, dir, b.Branch); err != nil {
			return b, err
		}
		if b.Dir = dir; wt == j.RunInfo.Workspace {
			b.Dir = e.rootIn(dir)
		}
	}
	real, err := atomicfile.RealPath(b.Dir)
	if err != nil {
		return b, job.Unready("worktree %s: %v", e.Shown(b.Dir), err)
	}
	if !e.ours(ctx, real) {
		return b, job.Refused("worktree %s: it is a link that leads out of the repo: name the folder itself", e.Shown(b.Dir))
	}
	if e.opt.Git != nil {
		b.Top, err = e.opt.Git.TopOf(real)
		if err != nil && j.Checks(st) {
			return b, noGit(e.Shown(b.Dir), err)
		}
	}
	return b, nil
}

// noGit is of a checkout that git cannot read, though the repo is one.
func noGit(dir string, err error) error {
	return job.Unready("git in %s: %v: what the step changes could not be told: mend the checkout", dir, err)
}

// checkout makes the worktree where nothing is there yet.
func (e *Executor) checkout(ctx context.Context, dir, branch string) error {
	info, err := os.Stat(dir)
	mark := e.makingFile(dir)
	var half making
	switch {
	case err == nil && info.IsDir() && layout.Load(mark, &half) == nil && e.opt.Git.Checkout():
		// Whoever was making it was killed: nobody has worked in it.
		if err := e.opt.Git.FillWorktree(context.WithoutCancel(ctx), dir); err != nil {
			if health.Passing(err) {
				return err
			}
			return job.Unready("worktree %s: sluice was killed while it made it, and it cannot be completed: %v: remove the folder and run git worktree prune", e.Shown(dir), err)
		}
		return os.Remove(mark)
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return job.Refused("worktree %s: a file has this name: move it away", e.Shown(dir))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !e.opt.Git.Checkout():
		return job.Unready("worktree %s: it is not there, and %s is no git checkout to make it of: make the folder, or run git init", e.Shown(dir), e.Root)
	}
	if err := e.There(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Not broken off in the middle: half a checkout would be taken for a whole one. The mark is for a kill.
	if err := layout.Save(mark, making{Dir: dir}); err != nil {
		return err
	}
	if _, err := e.opt.Git.AddWorktree(context.WithoutCancel(ctx), dir, branch); err != nil {
		if health.Passing(err) {
			return err
		}
		return job.Unready("%v", err)
	}
	return os.Remove(mark)
}

// making is the mark of a worktree that is being made.
type making struct {
	Dir string `json:"dir"`
}

func (e *Executor) makingFile(dir string) string {
	return filepath.Join(e.State, "making", layout.HexSum([]byte(dir))[:32])
}

// ours says that a real path lies in the root or in one of the repo's worktrees.
func (e *Executor) ours(ctx context.Context, real string) bool {
	if inside(e.Root, real) {
		return true
	}
	if !e.opt.Git.Checkout() {
		return false
	}
	trees, err := e.opt.Git.Worktrees(ctx)
	if err != nil {
		return false
	}
	for _, t := range trees {
		if inside(t.Path, real) {
			return true
		}
	}
	return false
}

func inside(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// Trees gives for each worktree of the spec that exists the key of its checkout: "." for the root's own, and one below the
// root as seen from there, as a worktree that is yet to be made has its path as its key.
func (e *Executor) Trees(ctx context.Context, spec *engine.Spec) map[string]string {
	out := map[string]string{}
	root, err := git.Toplevel(e.Root)
	if err != nil {
		root = e.Root
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
		key, err := git.Toplevel(filepath.Join(e.Root, filepath.FromSlash(wt)))
		switch {
		case err == nil && key == root:
			out[wt] = "."
		case err == nil:
			out[wt] = key
			if rel, err := filepath.Rel(e.Root, key); err == nil && filepath.IsLocal(rel) {
				out[wt] = filepath.ToSlash(rel)
			}
		}
	}
	return out
}

// firstLaunch lays out the folder of a run: its spec as it was, and runs/last.
func (e *Executor) firstLaunch(j job.Job) error {
	if c := j.RunInfo.Child; c != nil {
		if err := e.firstOfChild(j, c); err != nil {
			return err
		}
	}
	if err := e.MakeBelow(e.RunDir(j.Run)+"/files", 0o700); err != nil {
		return err
	}
	if err := e.MakeBelow(".workflow/signals/"+j.Run, 0o755); err != nil {
		return err
	}
	if j.RunInfo.Child != nil {
		return nil
	}
	e.keepSpec(j)
	return e.pointLast(j.Run)
}

// keepSpec copies the spec, as long as its file is the one the run goes by.
func (e *Executor) keepSpec(j job.Job) {
	to, err := e.Below(e.RunDir(j.Run) + "/spec.yaml")
	if err != nil {
		return
	}
	if _, err := os.Lstat(to); err == nil {
		return
	}
	data, _, err := atomicfile.OpenRegular(filepath.Join(e.Root, ".workflow", "specs"), j.RunInfo.Workflow+".yaml", maxSpecFile)
	sum := layout.HexSum(data)
	if err != nil || sum != j.Spec.Digest && sum != j.RunInfo.File {
		return // it was changed since: the journal has the one the run goes by
	}
	if err := atomicfile.Write(to, data, 0o600); err != nil {
		e.opt.Logf("%s: %v", e.Shown(to), err)
	}
}

const maxSpecFile = 128 << 10

// pointLast has runs/last point to the newest run.
func (e *Executor) pointLast(run string) error {
	last, err := e.Below(".workflow/runs/last")
	if err != nil {
		return err
	}
	e.pointing.Lock()
	defer e.pointing.Unlock()
	to, err := os.Readlink(last)
	if err == nil && (to == run || newer(to, run)) {
		return nil
	}
	if info, err := os.Lstat(last); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return nil // somebody's own file: left alone
	}
	tmp := filepath.Join(filepath.Dir(last), fmt.Sprintf(".last-%d", os.Getpid()))
	_ = os.Remove(tmp) // of a process that was killed and whose number came again
	if err := os.Symlink(run, tmp); err != nil {
		e.opt.Logf("runs/last: %v", err)
		return nil // a convenience: some systems let nobody make links
	}
	return os.Rename(tmp, last)
}

// newer says that run a of a workflow was started after run b of the same one.
func newer(a, b string) bool {
	wa, na := layout.NumberOf(a)
	wb, nb := layout.NumberOf(b)
	return wa == wb && na > nb
}
