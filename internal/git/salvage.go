package git

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	if err := t.apart(ctx); err != nil {
		return fail(err)
	}
	defer os.Remove(t.index)
	changed, err := t.add(ctx, "--update")
	if err != nil {
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
		changed = true
	}
	tree, err := t.treeAfter(ctx, changed)
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

// apart continues with a copy of our index. Ours keeps the entries of t.head, for the next call.
func (t *tree) apart(ctx context.Context) error {
	tree, err := t.r.TreeOf(ctx, t.head)
	if err == nil {
		err = t.holds(tree)
	}
	if err != nil {
		return err
	}
	was := t.index
	t.index += ".apart"
	t.env = t.r.inShadowTree(t.top, t.index)
	return errors.Join(unlockIndex(t.index), copyFile(was, t.index))
}

// ourIdentity is the author of commits that no person made.
func ourIdentity() []string {
	return []string{
		"GIT_AUTHOR_NAME=sluice", "GIT_AUTHOR_EMAIL=sluice@localhost",
		"GIT_COMMITTER_NAME=sluice", "GIT_COMMITTER_EMAIL=sluice@localhost",
	}
}
