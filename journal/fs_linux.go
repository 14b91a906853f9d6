package journal

import (
	"os"
	"syscall"
)

// syncData calls fdatasync: it syncs the data and the size, but not the file's times.
func syncData(f *os.File) error { return onFd(f, "fdatasync", syscall.Fdatasync) }

// Reserve allocates blocks behind the file's end without changing its size (FALLOC_FL_KEEP_SIZE).
func (f osFile) Reserve(offset, size int64) error {
	const keepSize = 1
	return onFd(f.File, "fallocate", func(fd int) error { return syscall.Fallocate(fd, keepSize, offset, size) })
}

// onFd makes a system call with a file. It repeats only an interrupted call, which has not failed yet.
func onFd(f *os.File, name string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		for {
			if failed = call(int(fd)); failed != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError(name, failed)
}
