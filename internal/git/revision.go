package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/internal/fault"
)

// maxRevision bounds a person's name for a commit.
const maxRevision = 300

// leastShort is how many digits git gives a shortened object name at least, as it prints one.
const leastShort = 7

// Resolve returns the commit that a person's name for it means in the opened checkout: a branch, a
// tag, HEAD~2, a shortened object name. A name that means several is refused: git takes a tag
// origin/main, which whoever may push can make, before the branch.
func Resolve(ctx context.Context, r *Repo, rev string) (string, error) {
	bad := func(c rune) bool { return c <= ' ' || c == 0x7f || c == ':' }
	if rev == "" || len(rev) > maxRevision || rev[0] == '-' || strings.ContainsFunc(rev, bad) {
		return "", fault.New("name a branch, a tag or a commit", "%.80q names no commit", rev)
	}
	gitDir, top, err := r.gitDirOf(r.top)
	if err != nil {
		return "", err
	}
	if err := r.oneMeaning(ctx, gitDir, top, rev); err != nil {
		return "", err
	}
	c := call{args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}"}}
	out, err := r.inRepo(ctx, gitDir, top, c)
	if _, ok := errors.AsType[*CommandError](err); ok {
		return "", fault.New("fetch it: git fetch origin", "%s: there is no such commit here", OneLine(rev))
	}
	return nameIn(out, err)
}

// oneMeaning refuses a name for which git would choose: among refs (gitrevisions(7)), or between a ref and
// an object whose name it shortens.
func (r *Repo) oneMeaning(ctx context.Context, gitDir, top, rev string) error {
	name, _, _ := strings.Cut(rev, "@{")
	if i := strings.IndexAny(name, "~^"); i >= 0 {
		name = name[:i]
	}
	var are []string
	for _, form := range []string{"refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s", "refs/remotes/%s/HEAD"} {
		ref := fmt.Sprintf(form, name)
		if checkRef(ref) != nil {
			continue
		}
		tip, err := r.TipOf(ctx, ref)
		if err != nil {
			return err
		}
		if tip.SHA != "" {
			are = append(are, ref)
		}
	}
	if len(are) == 1 && len(name) >= leastShort && strings.Trim(name, "0123456789abcdefABCDEF") == "" {
		objects, err := r.inRepo(ctx, gitDir, top, call{args: []string{"rev-parse", "--disambiguate=" + name}})
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(objects)) != "" {
			are = append(are, "an object")
		}
	}
	if len(are) > 1 {
		return fault.New("write the one that you mean", "%s has several meanings: %s", OneLine(name), strings.Join(are, ", "))
	}
	return nil
}
