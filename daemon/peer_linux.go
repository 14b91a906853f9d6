package daemon

import (
	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end of the socket.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
