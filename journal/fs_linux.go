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

// Reserve has blocks be kept for the file behind its end (FALLOC_FL_KEEP_SIZE).
func (f osFile) Reserve(offset, size int64) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		const keepSize = 1
		for {
			if failed = syscall.Fallocate(int(fd), keepSize, offset, size); failed != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fallocate", failed)
}
