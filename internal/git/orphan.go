package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sluice/internal/fault"
)

// A git that we have started goes on where we are killed: it may write an index or a ref while the next of our processes is
// at it already. So our locks are handed down: one that is open in a git is held until that git has ended.

// gitsLock is the file in the scratch folder that is locked while one of us, or a git of one who was killed, uses it.
const gitsLock = "in-use"

// ErrGitsLeft says that a git which a killed process of ours started is still at work.
var ErrGitsLeft = fault.New("wait for its end", "a git of an earlier sluice is still at work here, or another sluice is")

// heirWait is how long an earlier git is waited for, and heirPause the time between two looks.
const (
	heirWait  = 5 * time.Second
	heirPause = 20 * time.Millisecond
)

// lockScratch locks the scratch folder for as long as the file is open, here or in a git.
func lockScratch(ctx context.Context, scratch string) (*os.File, error) {
	if err := os.MkdirAll(scratch, privateDir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(scratch, gitsLock), os.O_RDWR|os.O_CREATE, privateOwn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, heirWait)
	defer cancel()
	for {
		ok, err := tryLock(f)
		if ok {
			return f, nil
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), ErrGitsLeft), f.Close())
		case <-time.After(heirPause):
		}
	}
}

type guardKey struct{}

// Guard has each git that is started with the context hold the index too, until it has ended.
func (h *HeldIndex) Guard(ctx context.Context) context.Context {
	return context.WithValue(ctx, guardKey{}, h.record)
}

// handDown gives a git our locks. One that may start programs of the person's gets none: such a program can stay for good.
func (t tool) handDown(ctx context.Context, c call, cmd *exec.Cmd) {
	if c.userConfig {
		return
	}
	if t.gits != nil {
		inherit(cmd, t.gits)
	}
	if f, ok := ctx.Value(guardKey{}).(*os.File); ok {
		inherit(cmd, f)
	}
}
