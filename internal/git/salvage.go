package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// salvageRefs is the folder of the attempts' end states.
const salvageRefs = ownRefs + "salvage/"

// Salvage keeps the worktree's files, committed or not, new files included but not ignored ones, as
// a commit on top of its HEAD at refs/sluice/salvage/<name>, and returns its object name. It
// changes neither the worktree nor its index or branch, runs no filter, and replaces an existing
// ref.
func (r *Repo) Salvage(ctx context.Context, worktree, name, message string) (sha string, err error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("salvage %s: %w", worktree, err) }
	ref := salvageRefs + name
	if err := checkRef(ref); err != nil {
		return fail(err)
	}
	t, err := r.openTree(ctx, worktree, "")
	if err != nil {
		return fail(err)
	}
	defer t.unlock()
	changed, err := t.uncommitted(ctx)
	if err != nil {
		return fail(err)
	}
	added, err := t.untracked(ctx)
	if err != nil {
		return fail(err)
	}
	var in bytes.Buffer
	for _, n := range append(changed, added...) {
		if strings.HasSuffix(n, "/") {
			continue // a nested repo keeps its own
		}
		in.WriteString(n + "\x00")
	}
	steps := []struct {
		stdin *bytes.Buffer
		args  []string
	}{
		{&in, []string{"update-index", "-z", "--add", "--remove", "--stdin"}},
		{&bytes.Buffer{}, []string{"write-tree"}},
	}
	var out []byte
	for _, s := range steps {
		c := call{args: s.args, env: t.env, dir: t.top, stdin: s.stdin, limit: listOutput, timeout: treeTime}
		if out, err = r.run(ctx, c); err != nil {
			return fail(err)
		}
	}
	commit := []string{"commit-tree", "--no-gpg-sign", strings.TrimSpace(string(out))}
	if t.head != r.emptyTree() {
		commit = append(commit, "-p", t.head)
	}
	out, err = r.shadow(ctx, call{args: commit, env: ourIdentity(), stdin: strings.NewReader(message),
		limit: smallOutput, timeout: callTime})
	if sha, err = nameIn(out, err); err != nil {
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
