package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/git"
)

const (
	maxProtected   = 100 // files told of
	maxCutReported = git.MaxChanged
)

// covered is what an attempt's digest is of.
type covered struct {
	Root  []string `json:"root,omitempty"` // declared outputs in .workflow/, from the root
	Dir   string   `json:"dir"`
	Made  []string `json:"made,omitempty"` // the other declared outputs, from Dir
	Top   string   `json:"top,omitempty"`
	Files []string `json:"files,omitempty"` // changed files, from Top
}

// digested adds to a check what it was over, and which protected files were changed.
func (e *Executor) digested(ctx context.Context, job daemon.Job, st *engine.Step, b begin, outs []string, r engine.CheckResult) engine.CheckResult {
	c := covered{Dir: b.Dir, Top: b.Top}
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
	if b.Top != "" {
		var since []string
		err := e.persist(ctx, job.Key, func() (err error) {
			if since, err = e.changedSince(ctx, b); err != nil || job.Attempt.N == 1 {
				return err
			}
			// The digest is of all the work on the step, so that an attempt that changes nothing is seen to change nothing.
			var first begin
			if kept(e.attemptFile(job.Run, st.ID, 1, "begin"), &first) == nil && first.Top == b.Top {
				c.Files, err = e.changedSince(ctx, first)
			}
			return err
		})
		if ctx.Err() != nil { // what was read may be cut short: nothing is recorded of it
			return r
		}
		if err != nil { // an attempt that breaks git is not one that changed nothing
			r.Broken = unseen(r.Broken, err)
			return r
		}
		r.Protected = guarded(job.Spec, since, outs, judging{root: e.root, top: b.Top, dir: b.Dir})
		c.Files = merged(c.Files, since)
	}
	err := e.persist(ctx, job.Key, func() error { return keep(e.attemptFile(job.Run, st.ID, job.Attempt.N, "files"), c) })
	if err == nil {
		r.Digest, err = e.digest(ctx, c)
	}
	if err != nil {
		r.Broken = unseen(r.Broken, err)
	}
	return r
}

// unseen is why a check is broken whose work could not be read, where nothing broke it before.
func unseen(before string, err error) string {
	if before != "" {
		return before
	}
	return "what is to be reviewed could not be read: " + err.Error()
}

func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// changedSince gives the files that differ from how they were when the attempt began.
func (e *Executor) changedSince(ctx context.Context, b begin) ([]string, error) {
	changes, err := e.opt.Git.Changed(ctx, b.Top, b.Head)
	if err != nil {
		return nil, err
	}
	cut := ""
	if changes.Cut {
		cut = fmt.Sprintf("more than %d files are changed: the digest covers the first of them; ignore what is made (.gitignore)", maxCutReported)
	}
	e.note("git in "+e.shown(b.Top), cut)
	var out []string
	seen := map[string]bool{}
	for _, f := range changes.Files {
		seen[f] = true
		if ownFile(e.root, b.Top, f) || slices.Contains(b.Lists, f) {
			continue
		}
		if was, dirty := b.Dirty[f]; dirty {
			if now, err := git.Digest(ctx, b.Top, []string{f}); err == nil && now == was {
				continue // so it was before
			}
		}
		out = append(out, f)
	}
	for f := range b.Dirty {
		if !seen[f] {
			out = append(out, f) // changed back
		}
	}
	slices.Sort(out)
	return out, nil
}

// digest is the digest of what is covered, as it is now.
func (e *Executor) digest(ctx context.Context, c covered) (string, error) {
	var parts []string
	for _, part := range []struct {
		base  string
		files []string
	}{{e.root, c.Root}, {c.Dir, c.Made}, {c.Top, c.Files}} {
		if part.base == "" || len(part.files) == 0 {
			parts = append(parts, "")
			continue
		}
		d, err := git.Digest(ctx, part.base, part.files)
		if err != nil {
			return "", err
		}
		parts = append(parts, d)
	}
	return hexSum([]byte(strings.Join(parts, "\n"))), nil
}

// DigestNow gives the digest of what a round was opened over, as it is now.
func (e *Executor) DigestNow(ctx context.Context, q daemon.Reviewed) (string, error) {
	var c covered
	err := kept(e.attemptFile(q.Run, q.Step, q.Attempt, "files"), &c)
	if errors.Is(err, fs.ErrNotExist) && q.Digest == "" {
		return "", nil // it was not checked: there is nothing to be bound to
	}
	if err != nil {
		return "", fmt.Errorf("what %s.%d of %s changed: %w", q.Step, q.Attempt, q.Run, err)
	}
	return e.digest(ctx, c)
}

// matches says that a path fits a glob: * and ? within a name, ** for any number of folders, also none. A glob that
// names a folder means all that is in it.
func matches(glob, name string) bool {
	return matchParts(strings.Split(path.Clean(glob), "/"), strings.Split(name, "/"))
}

// matchParts goes through the glob once, with all lengths of the path's beginning that it may have matched so far: no
// number of ** makes it slow.
func matchParts(glob, names []string) bool {
	rest := false // the glob ends in **: something has to be in the folder
	for len(glob) > 0 && glob[len(glob)-1] == "**" {
		glob, rest = glob[:len(glob)-1], true
	}
	at := make([]bool, len(names)+1)
	at[0] = true
	for _, part := range glob {
		next := make([]bool, len(names)+1)
		for i := range at {
			switch {
			case part == "**":
				next[i] = at[i] || i > 0 && next[i-1]
			case at[i] && i < len(names):
				ok, err := path.Match(part, names[i])
				next[i+1] = err == nil && ok
			}
		}
		at = next
	}
	if rest {
		at = at[:len(names)]
	}
	return slices.Contains(at, true)
}
