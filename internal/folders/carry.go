package folders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// maxCarried is the limit, in bytes, of an output carried between checkouts.
const maxCarried = 1 << 30

// Needed returns a step's input files. An earlier step's output that git ignores, and so is in no
// commit, is copied from the checkout in which it was made.
func (x *Folders) Needed(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin) (found []string, err error) {
	if b.Host != "" || len(st.Inputs) == 0 {
		found, missing, err := x.Inputs(j, st, b.Host)
		if err != nil {
			return nil, err
		}
		return b.SeenIn(found), x.missingInputs(missing, b.Dir)
	}
	record := x.recordFile(j, carriedRecord, b.Top)
	// Also during a copy: the next copy uses the same temporary name.
	unlock, err := x.records.Lock(ctx, record)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, missing, err := x.Inputs(j, st, b.Dir)
	if err != nil {
		return nil, err
	}
	// Path from Top -> digest; while a file is replaced, its old and new digest.
	carried := map[string]string{}
	if err := layout.Load(record, &carried); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b.Top == "" || x.opt.Git == nil || j.Env == nil || len(missing) == 0 && len(carried) == 0 {
		return found, x.missingInputs(missing, b.Dir)
	}
	before := maps.Clone(carried)
	note := func() error { return layout.Save(record, carried) }
	names, err := job.Texts(st.Inputs, j.Env, "input")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		at, inside := layout.Rel(b.Top, filepath.Join(b.Dir, filepath.FromSlash(name)))
		if !inside || layout.IsState(name) {
			continue
		}
		if slices.Contains(missing, name) {
			delete(carried, at)
		} else if carried[at] == "" {
			continue
		}
		if err := x.carried(ctx, j, b, at, carried, note); err != nil {
			return nil, err
		}
	}
	if !maps.Equal(before, carried) {
		if err := note(); err != nil {
			return nil, err
		}
	}
	found, missing, err = x.Inputs(j, st, b.Dir)
	if err != nil {
		return nil, err
	}
	return found, x.missingInputs(missing, b.Dir)
}

// carried copies one output, as it was judged, into b's checkout if git ignores it there; at is
// from the top. A file that sluice did not copy is left alone. The map is saved before the file
// gets its name, so that a kill leaves it known.
func (x *Folders) carried(ctx context.Context, j job.Job, b tree.Begin, at string, carried map[string]string,
	note func() error) error {
	if carried[at] != "" {
		now, err := git.Digest(ctx, b.Top, []string{at})
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(carried[at]), now) {
			delete(carried, at)
			return nil // somebody else's now
		}
		carried[at] = now
	}
	ignored, err := x.opt.Git.Ignored(ctx, b.Top, []string{at})
	if err != nil || !ignored[at] { // it would count as the step's work
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(j.Env.Steps)) {
		if state := j.Env.Steps[id].Status; state != engine.Passed && state != engine.Routed {
			continue // no gate has passed it or sent it on
		}
		var c tree.Covered
		if err := layout.Load(x.AttemptFile(j.Run, id, j.Env.Steps[id].Attempt, layout.CheckedFile), &c); err != nil ||
			c.Top == "" || c.Top == b.Top {
			continue
		}
		for _, f := range c.Taken.Beside {
			if f.Path != at || f.Digest == carried[at] {
				continue
			}
			if err := copyBelow(c.Top, b.Top, at, func(tmp string) error {
				now, err := git.DigestAs(ctx, b.Top, tmp, at)
				if err == nil && now != f.Digest {
					err = job.Refused("input %s has changed in %s since the work of %s was judged: do that step again", at,
						x.Shown(c.Top), id)
				}
				if err != nil {
					return err
				}
				carried[at] = strings.TrimSpace(carried[at] + " " + now)
				return note()
			}); err != nil {
				var no *job.Refusal
				if errors.As(err, &no) || ctx.Err() != nil {
					return err
				}
				return job.Unready("input %s, which %s made in %s: %v", at, id, x.Shown(c.Top), err)
			}
			carried[at] = f.Digest
			return nil
		}
	}
	return nil
}

// copyBelow copies a regular file to the same place in another folder, through no link that leaves
// either. The copy gets its name once check accepts it.
func copyBelow(from, to, name string, check func(tmp string) error) error {
	name = filepath.FromSlash(name)
	in, st, err := atomicfile.Open(from, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if st.Size > maxCarried {
		return fmt.Errorf("it has more than %d bytes", maxCarried)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(name), ".sluice-carried")
	if err := root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxCarried))
	if err = errors.Join(err, out.Chmod(st.Mode.Perm()), out.Sync(), out.Close()); err == nil {
		err = check(filepath.ToSlash(tmp))
	}
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(tmp))
	}
	return err
}
