package executor

import (
	"errors"
	"syscall"
)

// passing says that an error may be gone at the next try: the disk is full, the system is short of something.
func passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR, syscall.EIO, syscall.EROFS, syscall.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
