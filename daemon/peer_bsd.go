//go:build darwin || freebsd

package daemon

import (
	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end of the socket.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// lockedBy returns 0: which process has a lock is not known here.
func lockedBy(string) int { return 0 }
