package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

// If we are killed, a git that we started continues: it may write an index or a ref while our next
// process works on it. So git inherits our locks, and a lock is held until its git has ended.

// gitsLock is the file in the scratch folder that is locked while one of our processes, or a git of
// a killed one, uses it.
const gitsLock = "in-use"

// ErrGitsLeft is returned if a git that a killed process of ours started is still at work.
var ErrGitsLeft = fault.New("wait for its end",
	"a git of an earlier sluice is still at work here, or another sluice is")

// heirWait is how long to wait for an earlier git.
const heirWait = 5 * time.Second

// lockScratch locks the scratch folder while the file is open, here or in a git.
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
	err = until(ctx, func() (bool, error) { return tryLock(f) },
		func() error { return fmt.Errorf("%s: %w", f.Name(), ErrGitsLeft) })
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

type guardKey struct{}

// Guard makes each git started with the context hold the index too, until it has ended.
func (h *HeldIndex) Guard(ctx context.Context) context.Context {
	return context.WithValue(ctx, guardKey{}, h.record)
}

// handDown passes our locks to a git. One that may start the person's programs gets none, because
// such a program can stay forever.
func (t tool) handDown(ctx context.Context, c call, cmd *exec.Cmd) {
	if c.userConfig {
		return
	}
	if t.gits != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, t.gits)
	}
	if f, ok := ctx.Value(guardKey{}).(*os.File); ok {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
}

// tryLock locks a file until it is closed or the process ends. It reports whether the lock was
// free.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
