package tree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/internal/git"
)

// Start returns the commit of the folder's files, on top of the base: what a worker's folder starts
// from. It is kept by a ref of sluice's.
func (f Folder) Start(ctx context.Context, o Order) (string, error) {
	files, err := f.files(ctx, o.Base, nil)
	if err != nil {
		return "", err
	}
	commit, err := f.commit(ctx, files, o.Base, fmt.Sprintf("The folder as %s was sent it\n", o.Step))
	if err != nil {
		return "", err
	}
	return commit, f.Repo.Keep(ctx, git.Own("start", o.name()), commit)
}

// Returned is the work that a worker's launch has made: its files, and the last commit of its agent,
// below them.
type Returned struct{ Commit, Tip string }

// builtOn returns a *Refused where the work is not built on the commit that its launch began from.
func (r Returned) builtOn(ctx context.Context, repo interface {
	Descends(ctx context.Context, tip, base string) (bool, error)
}, head string) error {
	for _, pair := range [][2]string{{r.Tip, head}, {r.Commit, r.Tip}} {
		on, err := repo.Descends(ctx, pair[0], pair[1])
		if err == nil && on {
			continue
		}
		why, err := blame(fmt.Sprintf("the worker's commit %.12s is not built on %.12s", pair[0], pair[1]), err)
		if err != nil {
			return err
		}
		return &Refused{why}
	}
	return nil
}

// Return brings the work of a worker's launch into the repo, and writes its files into the folder. A
// pack with another content than said is refused: it is the attempt's failure. The same call may be
// made again.
func (f Folder) Return(ctx context.Context, o Order, r Returned, pack io.Reader) (Received, error) {
	no := func(why string, err error) (Received, error) {
		why, err = blame(why, err)
		return Received{Tip: o.Base, Refused: why}, err
	}
	if !git.IsName(r.Commit) || !git.IsName(r.Tip) {
		return no("what the worker says names no commit", nil)
	}
	err := Bring(ctx, f.Repo, pack, git.Own("tip", o.name()), r.Commit, o.Base)
	if err == nil {
		err = r.builtOn(ctx, f.Repo, o.Base)
	}
	if bad, ok := errors.AsType[*Refused](err); ok {
		return Received{Tip: o.Base, Refused: bad.Why}, nil
	}
	if err != nil {
		return Received{}, err
	}
	own, err := f.apart(nil)
	if err != nil {
		return Received{}, err
	}
	now, err := f.Repo.FolderTree(ctx, f.Top, o.Base, own)
	if err != nil {
		return Received{}, err
	}
	changes, err := f.Repo.ChangesBetween(ctx, now, r.Commit)
	for _, c := range changes {
		if git.Within(own, c.Path) { // an answer to a gate, for example
			return no(fmt.Sprintf("the worker's commit has %.200q, where only sluice writes", c.Path), nil)
		}
	}
	if err == nil && len(changes) > 0 {
		err = f.Repo.WriteFiles(ctx, f.Top, changes)
	}
	return Received{Tip: r.Tip}, err
}
