//go:build unix

package daemon

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

// mayWrite reports whether this process may change the contents of dir.
func mayWrite(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil
}

// isGone reports whether no process has this id; 0 = unknown, which is not gone.
func isGone(pid int) bool { return pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// lockDir locks the folder and checks that it is still the one at its path.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, err
	}
	have, err1 := f.Stat()
	want, err2 := os.Stat(dir)
	if err1 != nil || err2 != nil || !os.SameFile(have, want) {
		f.Close()
		return nil, fault.New("try again", "the folder was replaced while it was being locked")
	}
	return f, nil
}
