package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
)

// maxBeside is how many refs of a private folder are looked at, with their folders: an agent can make any
// number.
const maxBeside = 1000

// Beside returns the refs of an ended launch's folder whose commits the repo does not have after Receive: work on
// a branch that is not HEAD's, or in a stash. It reads plain files alone; refs that the agent packed are not seen.
// An error means that there may be more.
func (p Private) Beside(ctx context.Context, repo *git.Repo) (refs []string, err error) {
	n := 0
	_ = filepath.WalkDir(filepath.Join(p.Dir, "refs"), func(path string, d fs.DirEntry, bad error) error {
		if n++; n > maxBeside {
			err = fmt.Errorf("it has more than %d refs", maxBeside)
			return fs.SkipAll
		}
		if bad != nil || d.IsDir() {
			return nil // what cannot be read is not seen
		}
		name, _ := filepath.Rel(p.Dir, path)
		data, _, bad := atomicfile.OpenRegular(p.Dir, name, maxHead)
		sha := strings.TrimSpace(string(data))
		if bad != nil || !git.IsName(sha) || sha == p.Base {
			return nil
		}
		switch bad := repo.Whole(ctx, sha); {
		case errors.Is(bad, git.ErrMissing):
			refs = append(refs, filepath.ToSlash(name))
		case bad != nil && err == nil:
			err = bad
		}
		return nil
	})
	slices.Sort(refs)
	return refs, err
}
