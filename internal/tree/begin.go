package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sluice/internal/git"
	"sluice/internal/layout"
)

// Start describes what an attempt starts from in a folder that belongs to sluice.
type Start struct {
	From string            // the commit to start from
	Join []Joining         // commits to merge into it, in order
	Ours func(string) bool // reports files that sluice wrote into the folder, from its top: they stay
	// keep all files: the previous attempt's work could not be taken, and this one continues with
	// it
	Keep bool
}

// Joining is work from another folder.
type Joining struct {
	Commit string
	Found  string // the commit that its judges compared it with; "" = its whole history is ours
}

// Began is the result of Begin.
type Began struct {
	Base      string   // the commit of the folder's files; From itself if nothing was added
	Joined    []string // what was merged into it
	Conflicts []string // files with conflict markers in the folder; Base has them as in From
	Aside     string   // the commit of the previous files if some were overwritten or removed, else ""
}

// Begin prepares the folder for an attempt. Other files in it that are not ignored are kept at a
// ref (refs/sluice/salvage/<run>/<step>.<n>.before) and removed. HEAD and the index do not change.
func (f Folder) Begin(ctx context.Context, o Order, s Start) (b Began, err error) {
	now, err := f.files(ctx, s.From, nil)
	if err != nil {
		return b, err
	}
	beside, err := f.Repo.ChangesBetween(ctx, s.From, now)
	if err != nil {
		return b, err
	}
	b.Base = s.From
	marked, err := f.join(ctx, o, s.Join, &b)
	if err != nil {
		return b, err
	}
	ours, strays := split(beside, func(c git.Change) bool { return s.Ours != nil && s.Ours(c.Path) })
	if b.Base, err = f.with(ctx, b.Base, ours, fmt.Sprintf("The folder as %s found it\n", o.Step)); err != nil {
		return b, err
	}
	if s.Keep {
		return b, nil
	}
	want, err := f.Repo.WithChanges(ctx, b.Base, marked)
	if err != nil {
		return b, err
	}
	changes, err := f.Repo.ChangesBetween(ctx, now, want)
	if err != nil || len(changes) == 0 {
		return b, err
	}
	if len(strays) > 0 {
		if b.Aside, err = f.aside(ctx, o, now, s.From); err != nil {
			return b, err
		}
	}
	return b, f.Repo.WriteFiles(ctx, f.Top, changes)
}

// aside keeps the folder's files at a ref, on top of what a killed process kept there.
func (f Folder) aside(ctx context.Context, o Order, files, from string) (string, error) {
	ref := git.Own("salvage", o.name()+".before")
	had, err := f.Repo.TipOf(ctx, ref)
	if err != nil {
		return "", err
	}
	parents := []string{from}
	if had.SHA != "" {
		parents = append(parents, had.SHA)
	}
	message := fmt.Sprintf("%s: what was in the folder before attempt %d of %s\n", o.Run, o.N, o.Step)
	commit, err := f.Repo.CommitTree(ctx, files, message, parents...)
	if err != nil {
		return "", err
	}
	return commit, f.Repo.Keep(ctx, ref, commit)
}

// join merges commits into the base, and returns the entries of files with conflict markers.
func (f Folder) join(ctx context.Context, o Order, join []Joining, b *Began) (marked []git.Change, err error) {
	for _, j := range join {
		c := j.Commit
		if has, err := f.Repo.Descends(ctx, b.Base, c); err != nil || has {
			if err != nil {
				return nil, err
			}
			continue
		}
		merged, files, err := f.merged(ctx, b.Base, j)
		if err != nil && !errors.Is(err, git.ErrConflict) {
			return nil, err
		}
		clean, inFiles, err := f.unmarked(ctx, merged, b.Base, files)
		if err != nil {
			return nil, err
		}
		if b.Base, err = f.Repo.CommitTree(ctx, clean, fmt.Sprintf("Join what %s needs\n", o.Step), b.Base,
			c); err != nil {
			return nil, err
		}
		b.Joined = append(b.Joined, c)
		b.Conflicts = append(b.Conflicts, files...)
		marked = append(slices.DeleteFunc(marked,
			func(m git.Change) bool { return slices.Contains(files, m.Path) }), inFiles...)
	}
	slices.Sort(b.Conflicts)
	b.Conflicts = slices.Compact(b.Conflicts)
	return marked, nil
}

// merged merges work into a commit. If the work itself merged other commits, it could silently drop
// their content, which no judge has seen. Then only the judged changes are applied, without a merge
// base.
func (f Folder) merged(ctx context.Context, onto string, j Joining) (tree string, conflicts []string, err error) {
	var common []string
	if j.Found != "" {
		if common, err = f.Repo.MergeBases(ctx, onto, j.Commit); err != nil {
			return "", nil, err
		}
	}
	for _, m := range common {
		ours, err := f.Repo.Descends(ctx, j.Found, m)
		if err != nil {
			return "", nil, err
		}
		if !ours {
			return f.Repo.Replay(ctx, j.Found, j.Commit, onto)
		}
	}
	return f.Repo.MergeTree(ctx, onto, onto, j.Commit)
}

// unmarked restores files of a merged tree to their state in a commit, and returns the merged
// versions.
func (f Folder) unmarked(ctx context.Context, merged, commit string,
	files []string) (clean string, marked []git.Change, err error) {
	if len(files) == 0 {
		return merged, nil, nil
	}
	changes, err := f.Repo.ChangesBetween(ctx, commit, merged)
	if err != nil {
		return "", nil, err
	}
	marked, _ = split(changes, func(c git.Change) bool { return slices.Contains(files, c.Path) })
	clean, err = f.Repo.WithChanges(ctx, merged, turned(marked))
	return clean, marked, err
}

// with returns a commit on top of another with changes, or the other if there are none.
func (f Folder) with(ctx context.Context, commit string, changes []git.Change, message string) (string, error) {
	files, err := f.Repo.WithChanges(ctx, commit, changes)
	if err != nil {
		return "", err
	}
	return f.commit(ctx, files, commit, message)
}

// With returns the commit found with the differences between two other commits in the files that
// `is` accepts.
func (f Folder) With(ctx context.Context, found, from, to string, is func(string) bool) (string, error) {
	changes, err := f.Repo.ChangesBetween(ctx, from, to)
	if err != nil {
		return "", err
	}
	ours, _ := split(changes, func(c git.Change) bool { return is(c.Path) })
	return f.with(ctx, found, ours, "The folder as it was found\n")
}

// Others adds to the commit found what others than the step have changed since the work was last
// taken. A file with conflicts stays as found, counts as the step's, and is returned.
func (f Folder) Others(ctx context.Context, found, taken, now string) (commit string, both []string, err error) {
	files, both, err := f.Repo.Replay(ctx, taken, now, found)
	if errors.Is(err, git.ErrConflict) {
		files, _, err = f.unmarked(ctx, files, found, both)
	}
	if err != nil {
		return "", nil, err
	}
	commit, err = f.commit(ctx, files, found, "The folder as it was found, with what others changed since\n")
	return commit, both, err
}

// split separates changes by a predicate. It drops submodules.
func split(changes []git.Change, is func(git.Change) bool) (those, others []git.Change) {
	for _, c := range changes {
		switch {
		case c.Submodule():
		case is(c):
			those = append(those, c)
		default:
			others = append(others, c)
		}
	}
	return those, others
}

// turned returns the reverse changes.
func turned(changes []git.Change) []git.Change {
	var back []git.Change
	for _, c := range changes {
		back = append(back, git.Change{Path: c.Path, Old: c.New, New: c.Old, OldID: c.NewID, NewID: c.OldID})
	}
	return back
}

// Begin is the state before an attempt. It is recorded before anything is started.
type Begin struct {
	Dir string `json:"dir"` // where it works, absolute
	// the top level of its checkout; "" = no checkout of this repo
	Top    string `json:"top,omitempty"`
	Own    bool   `json:"own,omitempty"`    // the spec names a worktree or a branch
	Branch string `json:"branch,omitempty"` // the branch in the spec
	Head   string `json:"head,omitempty"`
	// full name of the checked-out branch; "" = HEAD is detached
	On string `json:"on,omitempty"`
	// the commit of the folder's files; Head if nothing differed
	Found     string            `json:"found,omitempty"`
	Joined    []string          `json:"joined,omitempty"`    // commits merged into the folder before it began
	Conflicts []string          `json:"conflicts,omitempty"` // files left with conflict markers by these
	Aside     string            `json:"aside,omitempty"`     // work that did not pass and is not in the folder
	Refs      map[string]string `json:"refs,omitempty"`      // git_commit, pr_creation
	Pulls     map[string]string `json:"pulls,omitempty"`     // pr_creation
	Asked     bool              `json:"asked,omitempty"`     // the forge listed its pull requests
	// task files below Top, which sluice writes: not part of the work
	Lists []string `json:"lists,omitempty"`
	// repositories below Top that were there before the run, which a sandbox keeps as they are
	Repos []string `json:"repos,omitempty"`
	// the commit that a read-only step sees; "" = it works here
	Look string `json:"look,omitempty"`

	Before string `json:"before,omitempty"` // of a read-only step: Look without work that has not passed

	Host string // the path of Look's checkout outside the sandbox; "" = it is Dir
}

// Base returns the folder without work that has not passed yet, for setups.
func (b Begin) Base() string { return cmp.Or(b.Before, b.Found) }

// SeenIn maps paths in the checkout of a read-only step to paths that the step sees.
func (b Begin) SeenIn(found []string) []string {
	for i, f := range found {
		if !filepath.IsLocal(filepath.FromSlash(f)) {
			found[i] = layout.SeenFrom(b.Dir, filepath.Join(b.Host, filepath.FromSlash(f)))
		}
	}
	return found
}
