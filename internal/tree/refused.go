package tree

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"

	"sluice/internal/git"
)

// Refused is why an attempt's work cannot be taken. It is the attempt's failure.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// refusal returns a *Refused for what git rejects in the work, and the machine's errors unchanged.
func refusal(err error) error {
	cmd, ofGit := errors.AsType[*git.CommandError](err)
	if !ofGit || cmd.Code < 0 || ofTheMachine(err) {
		return err
	}
	if strings.Contains(cmd.Stderr, ".lock': File exists") { // of our own index, where no agent writes
		return err
	}
	return &Refused{"the work cannot be taken: git refuses it: " + cmd.Stderr}
}

// ofTheMachine reports whether the machine caused an error, not the data.
func ofTheMachine(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EFBIG,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN}, func(e error) bool { return errors.Is(err, e) })
}

// damaged replaces an error if the repo lacks objects of the work's base.
func damaged(ctx context.Context, repo *git.Repo, base string, err error) error {
	_, refused := errors.AsType[*Refused](err)
	_, ofGit := errors.AsType[*git.CommandError](err)
	if base == "" || !refused && !ofGit {
		return err
	}
	if lack := repo.Whole(ctx, base); lack != nil {
		return lack
	}
	return err
}
