package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/internal/git"
)

// part is a commit of others in a run's history.
type part struct{ commit, of string }

// keeps refuses a tip whose history has commits of others without their changes. On its target
// branch, those changes would be lost; on others, a later merge would bring nothing, as git
// considers it merged. The judges have not seen that, because the run began without these commits.
func (w Work) keeps(ctx context.Context, repo *git.Repo, l Landing, onto string) error {
	if onto == "" || w.Unjudged {
		return nil
	}
	merged, err := repo.MergeBases(ctx, onto, l.Tip)
	if err != nil {
		return err
	}
	var parts []part
	for _, m := range merged {
		parts = append(parts, part{m, short(l.Onto)})
	}
	if l.How != Squash && l.How != Rebase { // these drop the history
		others, err := w.others(ctx, repo, l, onto)
		if err != nil {
			return err
		}
		parts = append(parts, others...)
	}
	for i, m := range parts {
		files, err := undone(ctx, repo, l.Base, l.Tip, m.commit)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			do := fmt.Sprintf("look: git diff %.12s %.12s; then `%s --unjudged`", m.commit, l.Tip, w.Typed)
			if i >= len(merged) {
				do += fmt.Sprintf(", or `%s` for one commit without that history", w.Typed)
			}
			return stuck(do, "branch %s has merged %.12s of %s, and undoes or changes again what that brought: %s", w.Branch,
				m.commit, m.of, some(files))
		}
	}
	return nil
}

// others returns the newest commits in the run's history that are on others' branches and tags.
func (w Work) others(ctx context.Context, repo *git.Repo, l Landing, onto string) ([]part, error) {
	refs, err := w.refs(ctx, repo, l.Tip)
	if err != nil {
		return nil, err
	}
	found, err := newest(ctx, repo, l, onto, refs)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// A person's branch has of another what the person wants. Another run may have undone it, so
	// each run counts by itself.
	var out []part
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		run, err := w.isRun(ctx, repo, name)
		if err != nil {
			return nil, err
		}
		if !run {
			continue
		}
		found, err := newest(ctx, repo, l, onto, map[string]string{name: refs[name]})
		if err != nil {
			return nil, err
		}
		delete(refs, name)
		out = append(out, found...)
	}
	found, err = newest(ctx, repo, l, onto, refs)
	return append(found, out...), err
}

// refs returns the branches and tags of others, by full name, except those that contain the tip and
// so build on the run's work.
func (w Work) refs(ctx context.Context, repo *git.Repo, tip string) (map[string]string, error) {
	named, err := repo.NamedBy(ctx, repo.Top())
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(named.Refs, func(name, _ string) bool {
		return name == headRefs+w.Branch || strings.HasPrefix(name, remoteRefs) && strings.HasSuffix(name, "/"+w.Branch)
	})
	has := func(refs map[string]string) (bool, error) {
		lacking, _, err := repo.NewCommits(ctx, map[string]string{"tip": tip}, slices.Collect(maps.Values(refs)), 1)
		return len(lacking) == 0, err
	}
	if some, err := has(named.Refs); err != nil || !some {
		return named.Refs, err
	}
	for name, sha := range named.Refs {
		if on, err := has(map[string]string{name: sha}); err != nil {
			return nil, err
		} else if on {
			delete(named.Refs, name)
		}
	}
	return named.Refs, nil
}

const remoteRefs = "refs/remotes/"

// isRun reports whether a ref is a run's branch, here or of a remote.
func (w Work) isRun(ctx context.Context, repo *git.Repo, name string) (bool, error) {
	prefix := "/" + strings.TrimSuffix(w.Branch, w.Run)
	_, run, found := strings.Cut(name, prefix)
	if !found || !strings.HasPrefix(name, headRefs) && !strings.HasPrefix(name, remoteRefs) {
		return false, nil
	}
	base, err := repo.TipOf(ctx, git.Own("base", run))
	return base.SHA != "", err
}

// newest returns the newest of the run's commits that some of the refs have too.
func newest(ctx context.Context, repo *git.Repo, l Landing, onto string, refs map[string]string) ([]part, error) {
	not := append(slices.Collect(maps.Values(refs)), l.Base, onto)
	own, _, err := repo.NewCommits(ctx, map[string]string{"tip": l.Tip}, not, len(l.Commits))
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for _, c := range l.Commits {
		theirs[c.SHA] = true
	}
	for _, c := range own {
		delete(theirs, c.SHA)
	}
	before := map[string]bool{}
	for _, c := range l.Commits {
		for _, p := range c.Parents {
			before[p] = before[p] || theirs[c.SHA]
		}
	}
	var out []part
	for _, c := range l.Commits {
		if !theirs[c.SHA] || before[c.SHA] {
			continue
		}
		of := "another branch"
		for _, name := range slices.Sorted(maps.Keys(refs)) {
			if refs[name] == c.SHA {
				of = strings.TrimPrefix(short(name), remoteRefs)
				break
			}
		}
		out = append(out, part{c.SHA, of})
	}
	return out, nil
}

// undone returns the files in which tip lacks the changes between base and a commit of its history.
func undone(ctx context.Context, repo *git.Repo, base, tip, merged string) (files []string, err error) {
	if has, err := repo.Descends(ctx, base, merged); err != nil || has {
		return nil, err
	}
	from, err := repo.MergeBases(ctx, base, merged)
	if err != nil {
		return nil, err
	}
	tree, files, err := repo.Replay(ctx, strings.Join(from[:min(len(from), 1)], ""), merged, tip)
	if err != nil && !errors.Is(err, git.ErrConflict) {
		return nil, err
	}
	changes, err := repo.ChangesBetween(ctx, tip, tree)
	for _, c := range changes {
		files = append(files, c.Path)
	}
	slices.Sort(files)
	return slices.Compact(files), err
}
