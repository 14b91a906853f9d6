package tree

import (
	"context"
	"fmt"
)

// resets is how often Reset looks again: an ignore file that goes can uncover files.
const resets = 3

// Reset makes the files as in a commit. keep is called before anything is written over. Ignored files, and sluice's own,
// stay as they are; so do the index and the branch. A call after a kill completes it.
func (f Folder) Reset(ctx context.Context, to string, keep func() error) error {
	want, err := f.Repo.TreeOf(ctx, to)
	if err != nil {
		return err
	}
	for range resets {
		have, err := f.Repo.FolderTree(ctx, f.Top, to, f.Own)
		if err != nil || have == want {
			return err
		}
		changes, err := f.Repo.ChangesBetween(ctx, have, want)
		if err != nil {
			return err
		}
		if err := keep(); err != nil {
			return err
		}
		if err := f.Repo.WriteFiles(ctx, f.Top, changes); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes while it is reset to %.12s", f.Top, to)
}
