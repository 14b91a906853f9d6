package journal

import (
	"os"
	"syscall"
)

// syncData calls fdatasync: it syncs the data and the size, but not the file's times.
func syncData(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = c.Control(func(fd uintptr) {
		for {
			// Retry only an interrupted call: it has not failed yet.
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

// Reserve allocates blocks behind the file's end without changing its size (FALLOC_FL_KEEP_SIZE).
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
