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

// Start is what an attempt goes on from in a folder that is sluice's own.
type Start struct {
	From string            // the commit that it goes on from
	Join []Joining         // commits that are merged into it, in this order
	Ours func(string) bool // files that sluice itself wrote into the folder, from its top: they stay as they are
	Keep bool              // all files stay as they are: an attempt of which nothing could be taken goes on with them
}

// Joining is work from another folder.
type Joining struct {
	Commit string
	Found  string // what those who judged it saw it beside; "" = its whole history is ours
}

// Began is what came of it.
type Began struct {
	Base      string   // the commit of what the folder has, From itself where nothing was to be added
	Joined    []string // what was merged into it
	Conflicts []string // files that have conflict markers in the folder; in Base they are as in From
	Aside     string   // the commit of the files as they were, where some were written over or removed; "" = none was
}

// Begin brings the folder to where an attempt goes on from. What lies there beside it, and is not ignored, is kept at a ref
// (refs/sluice/salvage/<run>/<step>.<n>.before) and removed. HEAD and the index are left alone.
func (f Folder) Begin(ctx context.Context, o Order, s Start) (b Began, err error) {
	own, err := f.apart(nil)
	if err != nil {
		return b, err
	}
	now, err := f.Repo.FolderTree(ctx, f.Top, s.From, own)
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

// aside keeps the files of the folder at a ref, with what a process that was killed had kept there.
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
	message := fmt.Sprintf("%s: what lay in the folder before attempt %d of %s\n", o.Run, o.N, o.Step)
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
		if b.Base, err = f.Repo.CommitTree(ctx, clean, fmt.Sprintf("Join what %s needs\n", o.Step), b.Base, c); err != nil {
			return nil, err
		}
		b.Joined = append(b.Joined, c)
		b.Conflicts = append(b.Conflicts, files...)
		marked = append(slices.DeleteFunc(marked, func(m git.Change) bool { return slices.Contains(files, m.Path) }), inFiles...)
	}
	slices.Sort(b.Conflicts)
	b.Conflicts = slices.Compact(b.Conflicts)
	return marked, nil
}

// merged merges work into a commit. Where the work has named commits of its own choice as merged, what it then leaves out of
// them would go: no judge has seen that, so it is no merge base, and what was judged is applied alone.
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

// unmarked takes files of a merged tree back to how a commit has them, and returns what they were.
func (f Folder) unmarked(ctx context.Context, merged, commit string, files []string) (clean string, marked []git.Change, err error) {
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

// with returns a commit on top of another, with changes; the other where there are none.
func (f Folder) with(ctx context.Context, commit string, changes []git.Change, message string) (string, error) {
	files, err := f.Repo.WithChanges(ctx, commit, changes)
	if err != nil {
		return "", err
	}
	return f.commit(ctx, files, commit, message)
}

// With returns the commit found with what is different in the files that `is` names between two other commits.
func (f Folder) With(ctx context.Context, found, from, to string, is func(string) bool) (string, error) {
	changes, err := f.Repo.ChangesBetween(ctx, from, to)
	if err != nil {
		return "", err
	}
	ours, _ := split(changes, func(c git.Change) bool { return is(c.Path) })
	return f.with(ctx, found, ours, "The folder as it was found\n")
}

// Others carries what others than the step have changed since the last taking into the commit found. A file that they
// changed in the same places as the step stays as it was found: all of it counts as the step's, and is returned.
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

// split sorts changes by whether they are of a kind. Submodules are of none.
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

// turned are the changes that take those back.
func turned(changes []git.Change) []git.Change {
	var back []git.Change
	for _, c := range changes {
		back = append(back, git.Change{Path: c.Path, Old: c.New, New: c.Old, OldID: c.NewID, NewID: c.OldID})
	}
	return back
}

// Begin is how things were when an attempt began. It is recorded before anything is started.
type Begin struct {
	Dir       string            `json:"dir"`              // where it works, absolute
	Top       string            `json:"top,omitempty"`    // the top level of its checkout; "" = there is none of this repo
	Own       bool              `json:"own,omitempty"`    // the spec names a worktree or a branch
	Branch    string            `json:"branch,omitempty"` // the one the spec means
	Head      string            `json:"head,omitempty"`
	On        string            `json:"on,omitempty"`        // the branch that is checked out, by its full name; "" = HEAD is detached
	Found     string            `json:"found,omitempty"`     // the commit of the folder's files as they were; Head where nothing differed
	Joined    []string          `json:"joined,omitempty"`    // commits that were merged into the folder before it began
	Conflicts []string          `json:"conflicts,omitempty"` // files that these left conflict markers in
	Aside     string            `json:"aside,omitempty"`     // work that did not pass and is not in the folder
	Refs      map[string]string `json:"refs,omitempty"`      // git_commit, pr_creation
	Pulls     map[string]string `json:"pulls,omitempty"`     // pr_creation
	Asked     bool              `json:"asked,omitempty"`     // the forge told its pull requests
	Lists     []string          `json:"lists,omitempty"`     // task files below Top, which sluice writes: they are no work
	Look      string            `json:"look,omitempty"`      // the commit that a step that only looks sees; "" = it works here

	Before string `json:"before,omitempty"` // of a step that only looks: Look without work that has not passed

	Host string // where the checkout of Look lies, as we see it; "" = it is Dir
}

// Base is the folder without work that has not passed yet: what a setup is run over.
func (b Begin) Base() string { return cmp.Or(b.Before, b.Found) }

// SeenIn has paths that were found in the checkout of a step that only looks be as it sees them.
func (b Begin) SeenIn(found []string) []string {
	for i, f := range found {
		if !filepath.IsLocal(filepath.FromSlash(f)) {
			found[i] = layout.SeenFrom(b.Dir, filepath.Join(b.Host, filepath.FromSlash(f)))
		}
	}
	return found
}
