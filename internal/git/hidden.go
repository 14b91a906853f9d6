package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// IgnoreName is the name of files with ignore rules.
const IgnoreName = ".gitignore"

// maxRules limits how many files of ignore rules a commit may have.
const maxRules = 10_000

// Rules are earlier ignore rules: those of a commit, and of files in no commit.
type Rules struct {
	Commit string   // "" = none
	Files  []string // unchanged rule files in the folder that are in no commit
	Others bool     // the lists of the repo and of the user are unchanged
}

// Hidden lists the files of a worktree that its ignore rules keep out of the commit but the earlier
// rules would not. It omits files for which own reports true.
func (r *Repo) Hidden(ctx context.Context, worktree, commit string, before Rules,
	own func(file string) bool) ([]string, error) {
	fail := func(err error) ([]string, error) { return nil, fmt.Errorf("ignored files: %w", err) }
	list, err := r.Beside(ctx, worktree, commit, own)
	if err != nil {
		return fail(err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp(r.scratch, "rules-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fail(err)
	}
	if err := r.layRules(ctx, worktree, dir, before); err != nil {
		return fail(err)
	}
	var others []string
	if before.Others {
		others = ignoreFiles(r.common)
	}
	ignored, err := r.ignoredBy(ctx, dir, others, list)
	if err != nil {
		return fail(err)
	}
	return slices.DeleteFunc(list, func(f string) bool { return ignored[f] }), nil
}

// layRules writes the rules into an empty folder. Git looks for them by the names of paths, which
// need not exist.
func (r *Repo) layRules(ctx context.Context, worktree, dir string, before Rules) error {
	all, err := r.ChangesBetween(ctx, "", before.Commit)
	if err != nil {
		return err
	}
	var rules []Change
	for _, c := range all {
		if path.Base(c.Path) == IgnoreName && strings.HasPrefix(c.New, "100") {
			rules = append(rules, c)
		}
	}
	if len(rules)+len(before.Files) > maxRules {
		return fmt.Errorf("more than %d files %s", maxRules, IgnoreName)
	}
	l, err := r.list(ctx, dir, rules, false)
	if err == nil {
		_, err = l.git(ctx, "", "checkout-index", "--all", "--force", "--quiet")
	}
	if err := errors.Join(err, l.remove()); err != nil {
		return err
	}
	for _, f := range before.Files {
		data, _, err := atomicfile.OpenRegular(worktree, filepath.FromSlash(f), maxExclude)
		if err != nil {
			continue // git ignores it too: a link, or too long
		}
		at := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(at), privateDir); err != nil {
			return err
		}
		if err := os.WriteFile(at, data, privateOwn); err != nil {
			return err
		}
	}
	return nil
}

// IgnoreLists returns a digest of the repo's and the user's ignore lists, which are not files of
// the worktree.
func (r *place) IgnoreLists() string {
	sum := sha256.Sum256(joined(ignoreFiles(r.common)))
	return hex.EncodeToString(sum[:])
}
