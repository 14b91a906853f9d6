//go:build unix

package git

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks an open file for as long as it is open; the end of the process unlocks it. It reports whether nobody
// else has it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
