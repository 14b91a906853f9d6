//go:build unix && !linux

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func renameNew(src, dst string) error { return renameByLink(src, dst) }

// openBeneath refuses a link at the end of name. A link in its middle is followed here: this system has
// no openat2.
func openBeneath(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_NOCTTY, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%q is a link: %w", name, ErrNotRegular)
	}
	return f, err
}

// RealPath is filepath.EvalSymlinks.
func RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// MountID is not known here: "".
func MountID(string) string { return "" }

// exchange is not known here.
func exchange(string, string) error { return errors.ErrUnsupported }
