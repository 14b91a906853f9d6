package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// FilesOf returns how many files an attempt changed, and that number with its declared ones.
func (x *takings) FilesOf(run, step string, n int) (changed, declared int) {
	var c tree.Covered
	if layout.Load(x.AttemptFile(run, step, n, layout.CheckedFile), &c) != nil {
		return 0, 0
	}
	return len(c.Files), len(c.Root) + len(c.Made) + len(c.Files)
}

// Digested adds the digest of the checked work to a result.
func (x *takings) Digested(ctx context.Context, j job.Job, st *engine.Step, c tree.Covered,
	r engine.CheckResult) engine.CheckResult {
	err := x.Persist(ctx, j.Key, func() (err error) {
		if c.Was, err = x.digest(ctx, c); err != nil {
			return err
		}
		return layout.Save(x.AttemptFile(j.Run, st.ID, j.Attempt.N, layout.CheckedFile), c)
	})
	if ctx.Err() != nil { // what was read may be incomplete: record nothing
		return r
	}
	if err != nil {
		r.Broken = Unseen(r.Broken, err)
		return r
	}
	r.Apart = c.Taken.Commit != "" && len(c.Outside()) == 0 &&
		!slices.ContainsFunc(st.Criteria, func(c engine.Criterion) bool { return c.Folder })
	if r.Digest, r.Content = c.ID(), c.With(c.Tree); r.Digest == "" {
		r.Digest = untaken + c.Was
	}
	return r
}

// Unseen returns why a check is broken: before, or that its work could not be read.
func Unseen(before string, err error) string {
	if before != "" {
		return before
	}
	return "what is to be reviewed could not be read: " + err.Error()
}

func (x *ground) digest(ctx context.Context, c tree.Covered) (string, error) {
	var parts []string
	for _, part := range []struct {
		base  string
		files []string
	}{{x.Root, c.Root}, {c.Dir, c.Made}, {c.Top, append(c.Outside(), c.Files...)}} {
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
	return layout.HexSum([]byte(strings.Join(parts, "\n"))), nil
}

// untaken is the prefix of the digest of work without a commit. A bare hash would look like a commit.
const untaken = "files "

// DigestNow returns the current digest of a round's work. It differs if the work in the folder has
// changed since.
func (x *takings) DigestNow(ctx context.Context, q job.Reviewed) (string, error) {
	var c tree.Covered
	err := layout.Load(x.AttemptFile(q.Run, q.Step, q.Attempt, layout.CheckedFile), &c)
	if errors.Is(err, fs.ErrNotExist) && q.Digest == "" {
		return "", nil // it was not checked: nothing to compare with
	}
	if err != nil {
		return "", fmt.Errorf("what %s.%d of %s changed: %w", q.Step, q.Attempt, q.Run, err)
	}
	now, err := x.digest(ctx, c)
	if errors.Is(err, fs.ErrNotExist) && x.opt.Git != nil && x.opt.Git.Checkout() {
		if _, gone := os.Lstat(c.Top); errors.Is(gone, fs.ErrNotExist) {
			return "", fault.New("`git worktree prune`, then `sluice retry "+q.Run+" "+q.Step+"` has the step do it again",
				"the worktree %s is gone", x.Shown(c.Top))
		}
	}
	if err != nil {
		return "", err
	}
	if c.ID() == "" {
		return untaken + now, nil
	}
	if now != c.Was {
		return "changed " + now, nil
	}
	return c.ID(), nil
}
