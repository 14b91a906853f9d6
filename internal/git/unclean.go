package git

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
)

// Unclean returns the tracked files that differ from the last commit, as in `git status`: staged,
// or changed in the worktree; with made also the new files that are not ignored, which else count
// once added. No filter runs: a file whose committed form comes from a filter (Git LFS) counts as
// changed only if git's own index has not seen its current state.
func (r *Repo) Unclean(ctx context.Context, worktree string, made bool) (Changes, error) {
	c, err := r.unclean(ctx, worktree, made)
	if err != nil {
		return Changes{}, fmt.Errorf("uncommitted files of %s: %w", worktree, err)
	}
	return c, nil
}

func (r *Repo) unclean(ctx context.Context, worktree string, made bool) (c Changes, err error) {
	gitDir, _, err := r.gitDirOf(worktree)
	if err != nil {
		return c, err
	}
	t, err := r.openTree(ctx, worktree, "")
	if err != nil {
		return c, err
	}
	defer t.unlock()
	// Use the worktree's own index but not its configuration: an index names no program.
	theirs := *t
	theirs.env = r.inShadowTree(t.top, filepath.Join(gitDir, indexFile))
	staged, err := theirs.differing(ctx, "diff-index", "--cached", t.head)
	if err != nil {
		return c, err
	}
	touched, err := theirs.differing(ctx, "diff-index", t.head)
	if err != nil {
		return c, err
	}
	// This also lists copied or touched files, so keep only those whose content differs by our own
	// index.
	list, err := t.uncommitted(ctx)
	if err != nil {
		return c, err
	}
	set, maybe := setOf(staged), setOf(touched)
	for _, name := range list {
		set[name] = set[name] || maybe[name]
	}
	if made {
		list, err = t.untracked(ctx)
		for _, name := range list {
			set[name] = true
		}
	}
	maps.DeleteFunc(set, func(_ string, differs bool) bool { return !differs })
	return changesOf(set), err
}

// Tracked lists the files at or below a path, whatever its case, that the own index of the checkout at
// top has, or the commit head; "" is none.
func (r *refs) Tracked(ctx context.Context, top, head, path string) ([]string, error) {
	gitDir, top, err := r.gitDirOf(top)
	if err != nil {
		return nil, err
	}
	out, err := r.inRepo(ctx, gitDir, top, call{args: []string{"ls-files", "-z", "--with-tree=" +
		cmp.Or(head, r.emptyTree()), "--", ":(icase,literal)" + path}, env: []string{"GIT_LITERAL_PATHSPECS=0"},
		dir: top, limit: wholeIndex})
	return names(out), err
}
