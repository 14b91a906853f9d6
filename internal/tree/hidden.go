package tree

import (
	"context"
	"path"
	"slices"

	"sluice/internal/git"
)

// maxHidden limits the listed files that new ignore rules hide. The others are counted.
const maxHidden = 200

// hidden lists files that the ignore rules keep out of the tree but the rules before the run would
// not. If no rule changed, there are none. changes are those since before the run; nil = unknown.
func (f Folder) hidden(ctx context.Context, was Before, changes []git.Change, t *Taken) (err error) {
	if was.Lists == "" {
		return nil // the run began with an older release
	}
	rules := func(file string) bool { return path.Base(file) == git.IgnoreName }
	others := was.Lists == f.Repo.IgnoreLists()
	any := !others || slices.ContainsFunc(t.Law, func(b Beside) bool { return rules(b.Path) })
	if !any {
		if changes == nil {
			if changes, err = f.Repo.ChangesBetween(ctx, was.Found, t.Commit); err != nil {
				return err
			}
		}
		any = slices.ContainsFunc(changes, func(c git.Change) bool { return rules(c.Path) })
	}
	if !any {
		return nil
	}
	before := git.Rules{Commit: was.Found, Others: others}
	for _, b := range was.Law {
		if rules(b.Path) && slices.Contains(t.Outside, b) {
			before.Files = append(before.Files, b.Path)
		}
	}
	own, err := f.apart(was.Odd)
	if err != nil {
		return err
	}
	files, err := f.Repo.Hidden(ctx, f.Top, t.Commit, before, func(file string) bool { return git.Within(own, file) })
	if err != nil {
		return err
	}
	slices.Sort(files)
	t.More = max(0, len(files)-maxHidden)
	for _, file := range files[:len(files)-t.More] {
		d, err := git.Digest(ctx, f.Top, []string{file})
		if err != nil {
			return err
		}
		t.Hidden = append(t.Hidden, Beside{Path: file, Digest: d})
	}
	return nil
}
