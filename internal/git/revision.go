package git

import (
	"context"
	"errors"
	"strings"

	"sluice/internal/fault"
)

// maxRevision bounds a person's name for a commit.
const maxRevision = 300

// Resolve returns the commit that a person's name for it means in the opened checkout: a branch, a
// tag, HEAD~2, a shortened object name.
func Resolve(ctx context.Context, r *Repo, rev string) (string, error) {
	bad := func(c rune) bool { return c <= ' ' || c == 0x7f || c == ':' }
	if rev == "" || len(rev) > maxRevision || rev[0] == '-' || strings.ContainsFunc(rev, bad) {
		return "", fault.New("name a branch, a tag or a commit", "%.80q names no commit", rev)
	}
	gitDir, top, err := r.gitDirOf(r.top)
	if err != nil {
		return "", err
	}
	c := call{args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}"}}
	out, err := r.inRepo(ctx, gitDir, top, c)
	if _, ok := errors.AsType[*CommandError](err); ok {
		return "", fault.New("fetch it: git fetch origin", "%s: there is no such commit here", OneLine(rev))
	}
	return nameIn(out, err)
}
