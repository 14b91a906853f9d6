package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged is a file that is not the one, or not as it was, that was to be replaced.
var ErrChanged = errors.New("the file was changed by others")

// Replace is Write for a file that others may change at any time: only the file that was is about
// is replaced. Where path is another by now, or none, nothing is changed and the error wraps
// ErrChanged. It gives the state of what it put there, never that of what others put there since.
//
// Where the system can exchange two files in one step (Linux), what it took away is looked at once
// more, and put back where it is not the file that was: an edit that is renamed into place is not
// lost, whenever it comes. Two kinds are: where there is no such step, one that comes between the
// last look and the rename; and everywhere one by a program that has the replaced file open and
// writes to it later.
func Replace(path string, data []byte, perm fs.FileMode, was Stat) (Stat, error) {
	return replace(path, data, perm, was, exchange)
}

// exchanger is exchange, of a system that has it or not.
type exchanger func(a, b string) error

func replace(path string, data []byte, perm fs.FileMode, was Stat, exchange exchanger) (Stat, error) {
	dir, name := filepath.Split(path)
	tmp, err := writeTmp(filepath.Clean(dir), data, perm)
	if err != nil {
		return Stat{}, fmt.Errorf("replace %s: %w", path, err)
	}
	ours, err := Lstat(filepath.Split(tmp))
	if err != nil {
		return Stat{}, fmt.Errorf("replace %s: %w", path, err)
	}
	st, err := Lstat(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !st.Same(was):
		err = ErrChanged
	case err == nil:
		err = swapIn(tmp, path, ours, was, exchange)
	}
	if err != nil {
		return Stat{}, fmt.Errorf("replace %s: %w", path, errors.Join(err, removeOurs(tmp, ours)))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return Stat{}, fmt.Errorf("replace %s: %w", path, err)
	}
	if now, err := Lstat(dir, name); err == nil && now.Same(ours) { // a rename tells in its Changed
		return now, nil
	}
	return ours, nil
}

// swapIn puts tmp in the place of path. With ErrChanged it has put back what it found there.
func swapIn(tmp, path string, ours, was Stat, exchange exchanger) error {
	if err := exchange(tmp, path); errors.Is(err, errors.ErrUnsupported) {
		return os.Rename(tmp, path)
	} else if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	} else if err != nil {
		return err
	}
	dir, name := filepath.Split(tmp)
	old, err := Lstat(dir, name)
	if err == nil && old.Same(was) {
		return os.Remove(tmp)
	}
	if err := exchange(tmp, path); err != nil { // it was removed just now: then what is here was put there before
		return errors.Join(ErrChanged, os.Rename(tmp, path))
	}
	if now, err := Lstat(dir, name); err == nil && !now.Same(ours) { // one that came later still
		return errors.Join(ErrChanged, os.Rename(tmp, path))
	}
	return ErrChanged
}

// removeOurs removes tmp, unless it holds what others had at the path and what could not be put
// back: then it says where that is.
func removeOurs(tmp string, ours Stat) error {
	switch now, err := Lstat(filepath.Split(tmp)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && now.Same(ours):
		return os.Remove(tmp)
	}
	return fmt.Errorf("what was there is kept as %s", tmp)
}
