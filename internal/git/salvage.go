package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Salvage keeps the worktree's files, committed or not, new files included but not ignored ones, as
// a commit on top of its HEAD at refs/sluice/salvage/<name>, and returns its object name. It
// changes neither the worktree nor its index or branch, runs no filter, and replaces an existing
// ref.
func (r *Repo) Salvage(ctx context.Context, worktree, name, message string) (sha string, err error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("salvage %s: %w", worktree, err) }
	ref := Own("salvage", name)
	if err := checkRef(ref); err != nil {
		return fail(err)
	}
	t, err := r.openHead(ctx, worktree, "")
	if err != nil {
		return fail(err)
	}
	defer t.unlock()
	if err := t.add(ctx, "--update"); err != nil {
		return fail(err)
	}
	added, err := t.untracked(ctx)
	if err != nil {
		return fail(err)
	}
	// a nested repo keeps its own
	added = slices.DeleteFunc(added, func(n string) bool { return strings.HasSuffix(n, "/") })
	if len(added) > 0 {
		if _, err := t.feed(ctx, listOf(added), "update-index", "-z", "--add", "--stdin"); err != nil {
			return fail(err)
		}
	}
	tree, err := t.writeTree(ctx)
	if err != nil {
		return fail(err)
	}
	var parents []string
	if t.head != r.emptyTree() {
		parents = []string{t.head}
	}
	sha, err = r.commit(ctx, nil, tree, message, parents...)
	if err != nil {
		return fail(err)
	}
	if err := r.Keep(ctx, ref, sha); err != nil {
		return fail(err)
	}
	return sha, nil
}

// ourIdentity is the author of commits that no person made.
func ourIdentity() []string {
	return []string{
		"GIT_AUTHOR_NAME=sluice", "GIT_AUTHOR_EMAIL=sluice@localhost",
		"GIT_COMMITTER_NAME=sluice", "GIT_COMMITTER_EMAIL=sluice@localhost",
	}
}
