package work

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

type owned struct {
	Run  string `json:"run"`
	Path string `json:"path"` // below the root
}

func (k *Work) ownedFile(p string) string {
	return filepath.Join(k.State, "retry", layout.HexSum([]byte(path.Clean(p)))[:32])
}

// own records that a run writes a file. What another run left there was swept before this run
// began.
func (k *Work) own(p, run string) error {
	return layout.Save(k.ownedFile(p), owned{Run: run, Path: path.Clean(p)})
}

// sweep moves the retry-context files of ended runs to those runs' folders. Files of no known run
// stay.
func (k *Work) sweep(live []string) error {
	dir := filepath.Join(k.State, "retry")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		var o owned
		if err := layout.Load(filepath.Join(dir, entry.Name()), &o); err != nil {
			k.Logf("retry context: %v", err)
			continue
		}
		if slices.Contains(live, o.Run) || !ids.ValidRun(o.Run) {
			continue
		}
		if err := k.sweepOne(o); err != nil && health.Passing(err) {
			return err
		} else if err != nil {
			k.Logf("retry context: %s: %v", o.Path, err)
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (k *Work) sweepOne(o owned) error {
	from, err := k.Below(o.Path)
	if err != nil {
		return err
	}
	rel := k.RunDir(o.Run) + "/retry-context"
	if err := k.MakeBelow(rel, 0o700); err != nil {
		return err
	}
	_, err = atomicfile.Move(from, filepath.Join(k.Path(rel), path.Base(o.Path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone already
	}
	if err == nil && path.Base(path.Dir(o.Path)) == o.Run {
		_ = os.Remove(filepath.Dir(from)) // the run's own folder, if empty now
	}
	return err
}

// prune releases what is kept for ended runs: their folders' inboxes, records of removed worktrees
// and, for runs that the state has forgotten, their files in the state folder. known are the
// state's runs when this was decided; a run newer than all of them is left alone.
func (k *Work) prune(live, known []string) error {
	newest, keep := map[string]int{}, map[string]bool{}
	for _, run := range known {
		flow, n := layout.NumberOf(run)
		newest[flow], keep[layout.PathElement(run)] = max(newest[flow], n), true
	}
	old := func(run string) bool {
		flow, n := layout.NumberOf(run)
		return n > 0 && n < newest[flow] || layout.ChildRun(run) && oldChild(run, newest, keep)
	}
	kept := func(run string) bool { return keep[run] }
	k.Inbox.ForgetRuns(func(run string) bool { return old(run) && !slices.Contains(live, run) })
	for _, c := range []struct {
		dir    string
		remove func(string) error
		stays  func(run string) bool
	}{
		{filepath.Join(k.State, layout.AttemptsDir), os.RemoveAll, kept},
		{filepath.Join(k.State, layout.LaunchesDir), os.RemoveAll, kept},
		{filepath.Join(k.State, layout.GitsDir), tree.Remove, kept},
		{filepath.Join(k.State, layout.HomesDir), os.RemoveAll, kept},
		// Of a run that ended before a scan saw its inbox. One with files stays.
		{k.Signals(), removeEmpty, func(run string) bool {
			return slices.Contains(live, run) || k.Inbox.Watched(filepath.Join(k.Signals(), run))
		}},
	} {
		entries, err := os.ReadDir(c.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			if run := entry.Name(); entry.IsDir() && old(run) && !c.stays(run) {
				if err := c.remove(filepath.Join(c.dir, run)); err != nil {
					return err
				}
			}
		}
	}
	if k.Git != nil {
		return k.Git.Forget()
	}
	return nil
}

// oldChild reports whether a child run belongs to an ended, forgotten run. newest are the highest
// known run numbers by workflow, keep the known runs.
func oldChild(run string, newest map[string]int, keep map[string]bool) bool {
	for i := range len(run) {
		if run[i] != '.' {
			continue
		}
		top := run[:i] // one of these is the run at the top
		if keep[layout.PathElement(top)] {
			return false
		}
		if flow, n := layout.NumberOf(top); n > 0 && n < newest[flow] {
			return true
		}
	}
	return false
}

func removeEmpty(dir string) error {
	if err := os.Remove(dir); err != nil && health.Passing(err) {
		return err
	}
	return nil
}
