package tree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/internal/git"
)

// Pack writes a pack of a commit without what the bases have; base "" is none. One of more than MaxPack bytes is a
// *Refused.
func Pack(ctx context.Context, repo *git.Repo, to io.Writer, tip string, bases ...string) error {
	return packed(ctx, repo, to, MaxPack, tip, bases...)
}

func packed(ctx context.Context, repo *git.Repo, to io.Writer, most int64, tip string, bases ...string) error {
	err := git.Pack(ctx, repo, to, most, tip, bases...)
	if errors.Is(err, git.ErrOutput) {
		return &Refused{fmt.Sprintf("its files and commits are too large to be sent: %d bytes, packed, are the most", most)}
	}
	return err
}

// Bring takes in a pack that Pack has written in another repo, as strictly as the commits of a launch,
// and keeps its commit by our ref. If the pack is at fault, or this repo lacks a base, the error is a
// *Refused; nothing of the pack stays after an error.
func Bring(ctx context.Context, repo *git.Repo, pack io.Reader, ref, tip string, bases ...string) error {
	return takeIn(ctx, repo, pack, tip, bases, func(ctx context.Context, q *git.Quarantine) error {
		return q.Keep(ctx, ref, tip)
	})
}

// takeIn is Bring with what keeps the commit, after all else is checked.
func takeIn(ctx context.Context, repo *git.Repo, pack io.Reader, tip string, bases []string,
	keep func(context.Context, *git.Quarantine) error) error {
	q, err := repo.Quarantine(ctx)
	if err != nil {
		return err
	}
	defer q.Close()
	within, cancel := context.WithTimeout(ctx, packTime)
	defer cancel()
	why := fmt.Sprintf("git refuses the pack of %.12s", tip)
	if err = q.Take(within, pack, MaxPack); err == nil {
		why = fmt.Sprintf("objects of %.12s are missing", tip)
		err = q.Connected(within, tip, bases...)
	}
	if err != nil {
		if why, err = blame(why, timely(within, err)); err == nil {
			err = &Refused{why}
		}
		return err
	}
	return keep(ctx, q)
}
