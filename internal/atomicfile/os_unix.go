//go:build unix && !linux

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

func renameNew(src, dst string) error { return renameByLink(src, dst) }

// renameFrom follows links on the way to dir, as openBeneath.
func renameFrom(_, dir, name string) (rename func(dst string) error, done func() error, err error) {
	return func(dst string) error { return renameNew(filepath.Join(dir, name), dst) }, func() error { return nil }, nil
}

// openBeneath refuses a link at the end of name. A link in its middle is followed here: this system has
// no openat2.
func openBeneath(dir, name string) (int, error) {
	path := filepath.Join(dir, name)
	fd, err := openFd(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_NOCTTY, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return -1, fmt.Errorf("%q is a link: %w", name, ErrNotRegular)
	case err != nil:
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// PlainDir is not known here: false.
func PlainDir(string) bool { return false }

// MkdirPlain is not known here: false.
func MkdirPlain(string, fs.FileMode) bool { return false }

// RealPath is filepath.EvalSymlinks.
func RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// MountID is not known here: "".
func MountID(string) string { return "" }

// exchange is not known here.
func exchange(string, string) error { return errors.ErrUnsupported }
