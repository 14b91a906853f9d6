package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"sluice/internal/fault"
)

// ErrMissing is returned if objects of a commit are not in the repo.
var ErrMissing = fault.New("git fsck names them, and git fetch brings back what a remote has",
	"objects are missing in this repo")

// Whole returns ErrMissing if the files of a commit lack an object. What a partial clone may lack
// counts as present.
func (r *objects) Whole(ctx context.Context, commit string) error { return r.whole(ctx, commit) }

func (r *objects) whole(ctx context.Context, commit string, more ...string) error {
	if err := checkSHA(commit); err != nil {
		return err
	}
	c := r.objectsOf(commit + "\n")
	c.args = append(append(c.args, "--no-walk"), more...)
	return r.lacking(ctx, commit, c)
}

// Connected is Whole for everything in tip but not in base; base "" is empty.
func (r *objects) Connected(ctx context.Context, tip, base string) error {
	in, err := span(tip, base)
	if err != nil {
		return err
	}
	return r.lacking(ctx, tip, r.objectsOf(in))
}

// wholeTrees is Whole for the folders of several commits: git silently merges a missing tree as if
// it were empty. It skips "".
func (r *objects) wholeTrees(ctx context.Context, commits ...string) error {
	for _, commit := range commits {
		if commit == "" {
			continue
		}
		if err := r.whole(ctx, commit, "--filter=blob:none"); err != nil {
			return err
		}
	}
	return nil
}

func (r *objects) lacking(ctx context.Context, commit string, c call) error {
	_, err := r.shadow(ctx, c)
	if cmd, ok := errors.AsType[*CommandError](err); ok && cmd.Code >= 0 && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("commit %.12s: %w (%w)", commit, ErrMissing, err)
	}
	return err
}

// objectsOf looks for every object of rev-list's input.
func (r *objects) objectsOf(in string) call {
	c := call{args: []string{"rev-list", "--objects", "--quiet", "--stdin"}, stdin: strings.NewReader(in),
		timeout: treeTime}
	if name := r.promises(); name != "" {
		c.args = append(c.args, "--missing=allow-promisor")
		c.env = setting("remote."+name+".promisor", "true")
	}
	return c
}
