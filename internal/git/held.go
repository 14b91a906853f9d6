package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

const (
	indexFile = "index"
	indexLock = "index.lock"
	// heldRecord describes what is being done to an index. index.lock is a hard link to it, which
	// distinguishes a lock left by a killed process of ours from a lock of a person's git.
	heldRecord = "sluice-index.record"
	// patchedNew and patchedIndex are the copy in progress and the finished one.
	patchedNew   = "sluice-index.new"
	patchedIndex = "sluice-index"
	// heldWords begin each of our records.
	heldWords = "sluice: this index is being changed\n"
	// maxRecordBytes limits a record.
	maxRecordBytes = 16 << 10
	// lockPause is the time between two tries for a lock.
	lockPause = 20 * time.Millisecond
)

// ErrIndexHeld is returned if another git has locked the index of a checkout, or its branch.
var ErrIndexHeld = errors.New("another git is at work in this checkout")

// heldBy is ErrIndexHeld with the lock's name. Only a person may remove a lock that is not ours.
func heldBy(lock string) error {
	return fault.New("wait for that git, or remove the file if none is running, and try again", "%w: %s exists",
		ErrIndexHeld, lock)
}

// HeldIndex is a locked index that no other git may write. Release it.
type HeldIndex struct {
	r       *Repo
	gitDir  string
	top     string
	root    *os.Root // of the git folder
	record  *os.File
	earlier string
}

// HoldIndex takes index.lock of the checkout at top, as git does, and waits for at most wait. Only
// one of our processes can hold it. Until Begin, Earlier returns the purpose that a killed process
// recorded.
func (r *Repo) HoldIndex(ctx context.Context, top string, wait time.Duration) (*HeldIndex, error) {
	gitDir, own, err := r.gitDirOf(top)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return nil, err
	}
	h := &HeldIndex{r: r, gitDir: gitDir, top: own, root: root}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	busy := func() error { return heldBy(filepath.Join(gitDir, indexLock)) }
	if err := until(ctx, h.takeRecord, busy); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := until(ctx, h.takeLock, busy); err != nil {
		if h.earlier == "" {
			err = errors.Join(err, ignoreGone(root.Remove(heldRecord)))
		}
		return nil, errors.Join(err, h.record.Close(), root.Close())
	}
	return h, nil
}

// IndexLeft reports whether a process, alive or killed, holds the index of a git folder.
func IndexLeft(gitDir string) bool {
	_, err := os.Lstat(filepath.Join(gitDir, heldRecord))
	return err == nil
}

// until retries until success or until time is up; then busy says who has the lock.
func until(ctx context.Context, try func() (bool, error), busy func() error) error {
	for {
		ok, err := try()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return busy()
		case <-time.After(lockPause):
		}
	}
}

// takeRecord opens the record and locks it against our other processes.
func (h *HeldIndex) takeRecord() (bool, error) {
	f, err := h.root.OpenFile(heldRecord, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	ok, err := tryLock(f)
	if ok {
		ok = h.same(f, heldRecord) // otherwise a process that finished has removed it
	}
	if !ok || err != nil {
		return false, errors.Join(err, f.Close())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRecordBytes))
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	h.record = f
	h.earlier, _ = strings.CutPrefix(string(text), heldWords)
	if len(text) == 0 {
		_, err = f.WriteString(heldWords)
	}
	return true, err
}

// same reports whether a name in the git folder refers to the open file.
func (h *HeldIndex) same(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := h.root.Lstat(name)
	return err == nil && os.SameFile(a, b)
}

// takeLock creates index.lock, or finds that it is ours. Without hard links, the lock is a copy of
// the record.
func (h *HeldIndex) takeLock() (bool, error) {
	err := h.root.Link(heldRecord, indexLock)
	switch {
	case err == nil, h.ours():
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		f, err := h.root.OpenFile(indexLock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = f.WriteString(heldWords)
		return true, errors.Join(err, f.Close())
	}
	return false, err
}

// ours reports whether index.lock is one of ours.
func (h *HeldIndex) ours() bool {
	if h.same(h.record, indexLock) {
		return true
	}
	data, _, err := atomicfile.OpenRegular(h.gitDir, indexLock, maxRecordBytes)
	return err == nil && strings.HasPrefix(string(data), heldWords)
}

// Earlier returns the purpose that a killed process recorded, or "".
func (h *HeldIndex) Earlier() string { return h.earlier }

// Begin records the purpose, and discards what an earlier process had prepared.
func (h *HeldIndex) Begin(purpose string) error {
	if err := h.drop(); err != nil {
		return err
	}
	if _, err := h.record.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := h.record.Truncate(0); err != nil {
		return err
	}
	if _, err := h.record.WriteString(heldWords + purpose); err != nil {
		return err
	}
	h.earlier = purpose
	return errors.Join(h.record.Sync(), settle(h.gitDir))
}

// drop removes copies, finished or in progress.
func (h *HeldIndex) drop() error {
	return errors.Join(ignoreGone(h.root.Remove(patchedIndex)), h.dropNew())
}

// dropNew removes copies in progress. A finished copy stays: it must still be put in place.
func (h *HeldIndex) dropNew() error {
	var errs error
	for _, name := range []string{patchedNew, patchedNew + ".lock"} {
		errs = errors.Join(errs, ignoreGone(h.root.Remove(name)))
	}
	return errs
}

// Prepared reports whether a finished copy waits to be put in place.
func (h *HeldIndex) Prepared() bool {
	_, err := h.root.Lstat(patchedIndex)
	return err == nil
}

// Swap replaces the index with the finished copy.
func (h *HeldIndex) Swap() error {
	if err := h.root.Rename(patchedIndex, indexFile); err != nil {
		return err
	}
	return settle(h.gitDir)
}

// Release unlocks the index. Copies not in place are dropped. The record stays if the lock does: by
// it the next process finds the lock, and removes it.
func (h *HeldIndex) Release() error {
	err := h.drop()
	var locked error
	if h.ours() {
		locked = ignoreGone(h.root.Remove(indexLock))
	}
	if locked == nil {
		err = errors.Join(err, ignoreGone(h.root.Remove(heldRecord)))
	}
	return errors.Join(err, locked, h.record.Close(), h.root.Close())
}

// Leave closes the files and leaves everything for the next process to complete.
func (h *HeldIndex) Leave() error { return errors.Join(h.record.Close(), h.root.Close()) }

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
