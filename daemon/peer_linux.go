package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end of the socket.
func peerUID(c *net.UnixConn) (uid int, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid = int(cred.Uid)
		}
		return err
	})
	return uid, err
}
