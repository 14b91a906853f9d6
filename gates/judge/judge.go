package judge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/gates/checkouts"
	"sluice/internal/atomicfile"
	"sluice/internal/folders"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/tree"
)

const judgeDir = "judge"

// TakenOf returns the commit taken of the job's attempt; ok is false if there is none.
func TakenOf(j job.Job) (commit string, ok bool) {
	if j.Attempt == nil {
		return "", false
	}
	commit = tree.CommitIn(j.Attempt.Digest)
	return commit, commit != ""
}

// newCheckouts returns the checkouts of a repo; nil without git.
func (js *Judges) newCheckouts() *checkouts.Checkouts {
	if js.opt.Git == nil {
		return nil
	}
	start := js.launches.Boot.ID
	if start == "" { // this system does not identify its starts
		start = rand.Text()
	}
	return checkouts.New(checkouts.Options{Dir: filepath.Join(js.State, judgeDir), Repo: js.opt.Git, Start: start,
		Over: js.judgeOver})
}

// judgeOver reports whether a checkout's user, a launch's pid file, is over. A user without a pid
// file is about to start if this process gave it the checkout.
func (js *Judges) judgeOver(pidFile string, here bool) bool {
	proc, err := js.opt.Runner.Adopt(pidFile, "")
	if errors.Is(err, fs.ErrNotExist) {
		return !here
	}
	return err == nil && proc.Over()
}

// Vacate releases the checkout of a launch that no longer uses it.
func (js *Judges) Vacate(pidFile string) {
	if js.Seats == nil {
		return
	}
	if err := js.Seats.Release(pidFile); err != nil {
		js.Logf("checkout of %s: %v", filepath.Base(pidFile), err)
	}
}

// JudgeAt returns the folder in which a launch judges a commit, until the launch is over. With
// commit "" it is the agent's own folder.
func (js *Judges) JudgeAt(ctx context.Context, j job.Job, b tree.Begin, commit, key string) (launch.Judged, error) {
	if !js.seats(b, commit) {
		return js.seated(ctx, b, commit, key, nil)
	}
	made, err := js.setUp(ctx, j, b)
	if err != nil {
		return launch.Judged{}, err
	}
	return js.seated(ctx, b, commit, key, made)
}

// seats reports whether there is a checkout of the commit for who judges it.
func (js *Judges) seats(b tree.Begin, commit string) bool {
	return commit != "" && b.Top != "" && js.Seats != nil
}

// seated is JudgeAt with the setup's results; nil where nothing is started.
func (js *Judges) seated(ctx context.Context, b tree.Begin, commit, key string,
	made []launch.Made) (launch.Judged, error) {
	own := launch.Judged{Begin: b, Agents: b, Host: b.Dir}
	if !js.seats(b, commit) {
		return own, nil
	}
	if len(commit) == 64 {
		if there, err := js.opt.Git.HasCommit(ctx, commit); err != nil || !there {
			return own, err // not there: the digest of files, bound by an older release
		}
	}
	rel, err := belowTop(b)
	if err != nil {
		return own, job.Unready("%v", err)
	}
	box, err := js.launches.Wanted()
	if err != nil {
		return own, err
	}
	seat, err := js.Seats.At(ctx, commit, js.PIDFile(key))
	if err != nil {
		return own, err
	}
	j := launch.Judged{Begin: b, Agents: b, Seat: seat, Host: filepath.Join(seat.Top, rel), Made: made,
		Covers: box != nil && box.Remaps()}
	err = js.furnish(ctx, j, rel)
	if err != nil {
		js.Vacate(js.PIDFile(key))
		return own, err
	}
	if j.Dir = filepath.Join(b.Top, rel); !j.Covers {
		j.Top, j.Dir = seat.Top, j.Host
	}
	return j, nil
}

// withUnshipped adds how many files of the folder are in no commit, for criteria judged there.
func (js *Judges) withUnshipped(ctx context.Context, b tree.Begin, commit string,
	r engine.CheckResult) engine.CheckResult {
	list, err := js.opt.Git.Beside(ctx, b.Top, commit, func(name string) bool {
		return slices.ContainsFunc(js.folders.OwnPaths(b),
			func(own string) bool { return name == own || strings.HasPrefix(name, own+"/") })
	})
	if err != nil {
		r.Broken = folders.Unseen(r.Broken, fmt.Errorf("files beside %.12s: %w", commit, err))
	}
	r.Unshipped = len(list)
	return r
}

func belowTop(b tree.Begin) (string, error) {
	rel, err := filepath.Rel(b.Top, b.Dir)
	if err == nil && filepath.IsLocal(rel) {
		return rel, nil
	}
	real, err := atomicfile.RealPath(b.Dir)
	if err == nil {
		rel, err = filepath.Rel(b.Top, real)
	}
	if err == nil && !filepath.IsLocal(rel) {
		err = fmt.Errorf("it is in another checkout than when the attempt began")
	}
	return rel, err
}

// furnish creates what a checkout needs beside the commit: its git folder, the step's folder and
// access to .workflow/.
func (js *Judges) furnish(ctx context.Context, j launch.Judged, rel string) error {
	stores, err := js.opt.Git.Stores()
	if err != nil {
		return job.Unready("%v", err)
	}
	if j.Covers {
		for i := range stores {
			stores[i] = sandbox.StoreAt(i)
		}
	}
	if err := j.Seat.Git(ctx, stores); err != nil {
		return err
	}
	root, err := os.OpenRoot(j.Seat.Top)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.ToSlash(rel), 0o755); err != nil {
		return job.Unready("folder %s in the work: %v", rel, err)
	}
	for _, dir := range []string{".", filepath.ToSlash(rel)} {
		if err := stateIn(root, dir); err != nil {
			return err
		}
	}
	for _, m := range j.Made {
		err := plainPath(root, path.Join(filepath.ToSlash(rel), m.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return job.Unready("what the setup made cannot be shown at %s in commit %.12s: %v there: remove it from the repo",
				m.Path, j.Seat.Commit, err)
		}
	}
	if !j.Covers {
		if err := j.Link(root, rel); err != nil {
			return err
		}
	}
	if !j.Covers && layout.Inside(j.Begin.Top, js.Root) {
		below, err := filepath.Rel(j.Begin.Top, js.Root)
		if err != nil {
			return err
		}
		return js.linkState(root, filepath.ToSlash(below))
	}
	return nil
}

// stateIn makes .workflow/ a folder in which inboxes can be shown. A committed link there could
// lead them elsewhere.
func stateIn(root *os.Root, dir string) error {
	for _, p := range []string{path.Join(dir, layout.WorkflowDir), path.Join(dir, layout.SignalsDir)} {
		if info, err := root.Lstat(p); err == nil && !info.IsDir() {
			if err := root.Remove(p); err != nil {
				return err
			}
		}
		if err := root.MkdirAll(p, 0o755); err != nil {
			return job.Unready("%s in the work: %v", p, err)
		}
	}
	return nil
}

// linkState links what .workflow/ has, and the commit lacks, into the checkout of an unheld judge.
func (js *Judges) linkState(root *os.Root, below string) error {
	if err := stateIn(root, below); err != nil {
		return err
	}
	at := path.Join(below, layout.WorkflowDir)
	if err := root.Remove(path.Join(below, layout.SignalsDir)); err != nil { // the commit's stays
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(js.Root, layout.WorkflowDir))
	if err != nil {
		return err
	}
	for _, x := range entries {
		err := root.Symlink(filepath.Join(js.Root, layout.WorkflowDir, x.Name()), path.Join(at, x.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// outputOf reads an output for a reviewer: from the tree or, if git ignores it, from the folder.
func (js *Judges) outputOf(j launch.Judged, p string) prompt.TextFile {
	f := js.collector.TextFile(j.Host, p, j.Host)
	if _, err := os.Lstat(filepath.Join(j.Host, filepath.FromSlash(p))); j.Seat != nil && errors.Is(err, fs.ErrNotExist) {
		f = js.collector.TextFile(j.Agents.Dir, p, j.Agents.Dir)
	}
	f.Path = layout.SeenFrom(j.Dir, filepath.Join(j.Dir, filepath.FromSlash(p)))
	return f
}

// LookFrom returns the checkout for a launch of a step that only looks, until the launch is over.
func (js *Judges) LookFrom(ctx context.Context, b tree.Begin, key string) (launch.Judged, error) {
	j, err := js.seated(ctx, b, b.Look, key, nil)
	if err == nil && j.Seat == nil {
		err = job.Unready("what it is to look at, commit %.12s, is not in the repo any more: retry the step", b.Look)
	}
	j.Reads, j.Begin.Host = true, j.Host
	return j, err
}
