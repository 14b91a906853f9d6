//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func openFd(path string, flags int, perm fs.FileMode) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = syscall.Open(path, flags|syscall.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

func closeFd(fd int) error { return os.NewSyscallError("close", syscall.Close(fd)) }

// readFd reads a regular file, whose size is thought to be known, up to a limit. A read that is short
// has met its end (read(2)).
func readFd(fd int, size, most int64) ([]byte, error) {
	data, n := make([]byte, min(size+1, most)), 0
	for {
		var got int
		if err := again(func() (err error) { got, err = syscall.Read(fd, data[n:]); return err }); err != nil {
			return nil, os.NewSyscallError("read", err)
		}
		if n += got; n < len(data) || int64(n) >= most {
			return data[:n], nil
		}
		data = append(data, make([]byte, min(int64(n), most-int64(n)))...)
	}
}

// Put writes a file anew, in place and unsynced, for what matters only while the machine is up. It is
// os.WriteFile with three system calls.
func Put(path string, data []byte, perm fs.FileMode) error {
	fd, err := openFd(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, perm)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		err = again(func() (err error) { n, err = syscall.Write(fd, data); return err })
		data = data[max(n, 0):]
	}
	if err = errors.Join(err, closeFd(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
