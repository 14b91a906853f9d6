package journal

import (
	"os"
	"syscall"
)

// syncData is fdatasync: it leaves out the times of the file, which a journal
// does not need, but not its size.
func syncData(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = c.Control(func(fd uintptr) {
		for {
			// Only an interrupted call is made again: it has not failed yet.
			if syncErr = syscall.Fdatasync(int(fd)); syncErr != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", syncErr)
}
