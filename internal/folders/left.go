package folders

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// addLeft adds the changes of the law that earlier runs left in a checkout and nobody has passed, if they are still
// in a commit of it. What cannot be compared counts as still there.
func (x *ground) addLeft(ctx context.Context, j job.Job, b tree.Begin, was tree.Before, commit string,
	law *changed) error {
	records, stills := map[string]Record{}, map[string]func(name, as string) bool{}
	for _, l := range j.Left {
		if l.Run == topmost(j) {
			continue // its changes are compared with before the run
		}
		r, ok := records[l.Run]
		if !ok {
			_ = layout.Load(x.recordOf(l.Run, folderRecord, b.Top), &r)
			records[l.Run], stills[l.Run] = r, x.stillThere(ctx, b, r.First, commit)
		}
		left := changed{names: []string{l.Name}, as: []string{l.As}}
		if l.Name == "" {
			if r.First == nil {
				continue // it did not begin there, or a person has removed the run
			}
			var err error
			if left, err = x.lawAmong(ctx, j, b, *r.First, cmp.Or(r.Left, was.Found), tree.Changed(r.First.Law, was.Law),
				nil); err != nil {
				left = changed{names: []string{"files that cannot be compared"}, as: []string{""}}
			}
		}
		for i, name := range left.names {
			if slices.Contains(law.names, name) || !stills[l.Run](name, left.as[i]) ||
				slices.Contains(j.LeftPassed, engine.Left{Run: l.Run, Name: name, As: left.as[i]}) {
				continue
			}
			if law.by == nil {
				law.by = make([]string, len(law.names))
			}
			law.names, law.as, law.by = append(law.names, name), append(law.as, left.as[i]), append(law.by, l.Run)
		}
	}
	return ctx.Err()
}

// stillThere returns a function that reports whether a file that changed since first has the same content in a commit,
// or may have it.
func (x *ground) stillThere(ctx context.Context, b tree.Begin, first *tree.Before,
	commit string) func(name, as string) bool {
	now, compared := map[string]string{}, false
	if first != nil {
		list, err := x.opt.Git.ChangesBetween(ctx, first.Found, commit)
		for file, as := range contents(list) {
			now[text.Name(file)] = as
		}
		compared = err == nil
	}
	return func(name, as string) bool {
		if strings.Contains(as, " ") { // a mode and an object
			return !compared || now[name] == as
		}
		file := filepath.Join(b.Top, filepath.FromSlash(name))
		if info, err := os.Lstat(file); as == "" || err != nil || !info.Mode().IsRegular() {
			return true
		}
		d, err := git.Digest(ctx, b.Top, []string{name})
		return err != nil || d == as
	}
}
