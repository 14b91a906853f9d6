package tree

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sluice/internal/git"
)

// Refused is why the work of an attempt cannot be taken: it is the attempt's failure.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Folder is where an attempt works.
type Folder struct {
	Repo *git.Repo
	Top  string   // the real path of its checkout's top level
	Own  []string // sluice's own files and folders, from Top: no work
}

// Find takes a folder as it is before an attempt: the commit of its files, which is base itself where nothing differs.
func (f Folder) Find(ctx context.Context, o Order) (found string, err error) {
	odd, _, err := f.Odd(ctx)
	if err != nil {
		return "", err
	}
	own, err := f.apart(odd)
	if err != nil {
		return "", err
	}
	files, err := f.Repo.FolderTree(ctx, f.Top, o.Base, own)
	if err != nil {
		return "", err
	}
	found, err = f.commit(ctx, files, o.Base, fmt.Sprintf("The folder as %s found it\n", o.Step))
	if err != nil || found == "" {
		return found, err
	}
	return found, f.Repo.Keep(ctx, git.Own("found", o.name()), found)
}

func (o Order) name() string { return fmt.Sprintf("%s/%s.%d", o.Run, o.Step, o.N) }

// Take takes the work of an attempt whose processes are gone. tip is the agent's own last commit; one that does not
// descend from the base does not count. known are the odd things that were in the folder before the run. The error is a
// *Refused where the attempt is to blame.
func (f Folder) Take(ctx context.Context, o Order, tip string, known []Odd) (Taken, error) {
	t := Taken{Tip: o.Base}
	own, err := f.apart(known)
	if err != nil {
		return t, err
	}
	if tip != "" && o.Base != "" {
		ok, err := f.Repo.Descends(ctx, tip, o.Base)
		if err != nil {
			return t, err
		}
		if !ok {
			tip = o.Base
		}
	}
	if tip != "" {
		t.Tip = tip
	}
	looked := make(chan error, 1)
	go func() { looked <- f.odd(ctx, known) }() // beside git, which reads the same folders
	files, err := f.Repo.FolderTree(ctx, f.Top, t.Tip, own)
	if odd := <-looked; odd != nil {
		return t, odd
	}
	if err != nil {
		return t, refusal(err)
	}
	if err := f.gitlinks(ctx, o.Found, files); err != nil {
		return t, err
	}
	t.Commit, err = f.commit(ctx, files, t.Tip, fmt.Sprintf("The work of %s that it did not commit\n", o.Step))
	if err != nil {
		return t, err
	}
	if t.Commit == "" { // no commit yet, and no file
		return t, nil
	}
	return t, f.Repo.Keep(ctx, git.Own("taken", o.name()), t.Commit)
}

// commit gives a commit with a tree: the parent where it has that tree, "" where there is neither.
func (f Folder) commit(ctx context.Context, files, parent, message string) (string, error) {
	had, err := f.Repo.TreeOf(ctx, parent)
	if err != nil || had == files {
		return parent, err
	}
	if parent == "" {
		return f.Repo.CommitTree(ctx, files, message)
	}
	return f.Repo.CommitTree(ctx, files, message, parent)
}

// odd refuses what git would skip in silence, or cannot hold, unless it was there before the run.
func (f Folder) odd(ctx context.Context, known []Odd) error {
	odd, more, err := f.Odd(ctx)
	if err != nil {
		return err
	}
	odd = slices.DeleteFunc(odd, func(o Odd) bool { return slices.Contains(known, o) })
	var special []string
	for _, o := range odd {
		if o.What == oddSpecial {
			special = append(special, o.Path)
		}
	}
	ignored, err := f.Repo.Ignored(ctx, f.Top, special)
	if err != nil {
		return err
	}
	odd = slices.DeleteFunc(odd, func(o Odd) bool { return o.What == oddSpecial && ignored[o.Path] })
	switch {
	case len(odd) > 0:
		return &Refused{"the work cannot be taken: " + listed(odd) + ": remove it"}
	case more:
		return fmt.Errorf("the folder has more than %d things that git cannot hold: look at it, and ignore or remove them", maxOdd)
	}
	return nil
}

// Odd lists what in the folder no commit can hold.
func (f Folder) Odd(ctx context.Context) (odd []Odd, more bool, err error) {
	linked, err := f.Repo.Linked()
	if err != nil {
		return nil, false, err
	}
	pass := func(dir string) bool { return slices.Contains(linked, filepath.Join(f.Top, dir)) }
	return Walk(ctx, f.Top, pass)
}

// apart are the folders that are no part of the work: sluice's own, worktrees and repositories that lie in the folder.
func (f Folder) apart(odd []Odd) ([]string, error) {
	linked, err := f.Repo.Linked()
	if err != nil {
		return nil, err
	}
	own := slices.Clone(f.Own)
	for _, dir := range linked {
		if rel, err := filepath.Rel(f.Top, dir); err == nil && rel != "." && filepath.IsLocal(rel) {
			own = append(own, filepath.ToSlash(rel))
		}
	}
	for _, o := range odd {
		if o.What == oddRepo {
			own = append(own, path.Dir(o.Path))
		}
	}
	return own, nil
}

// shownOdd is how many odd things a reason names.
const shownOdd = 5

func listed(odd []Odd) string {
	var words []string
	for _, o := range odd[:min(len(odd), shownOdd)] {
		o.Path = clip(o.Path)
		words = append(words, o.String())
	}
	if n := len(odd) - len(words); n > 0 {
		words = append(words, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(words, "; ")
}

// shownPath is how much of a path a reason shows: one may be 8 kB long.
const shownPath = 200

func clip(path string) string {
	if len(path) > shownPath {
		return strings.ToValidUTF8(path[:shownPath], "") + "…"
	}
	return path
}

// gitlinks refuses a submodule that is new, or moved to another commit: what it points to is in no tree.
func (f Folder) gitlinks(ctx context.Context, found, files string) error {
	changes, err := f.Repo.ChangesBetween(ctx, found, files)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.New == git.ModeSubmodule {
			return &Refused{fmt.Sprintf("the work cannot be taken: %q is a submodule that the step added or moved: leave submodules as they are", clip(c.Path))}
		}
	}
	return nil
}

// refusal tells what git refuses of the work from what the machine is to blame for.
func refusal(err error) error {
	var cmd *git.CommandError
	if !errors.As(err, &cmd) || cmd.Code < 0 {
		return err
	}
	for _, machine := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, machine) {
			return err
		}
	}
	return &Refused{"the work cannot be taken: git refuses it: " + cmd.Stderr}
}
