//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// How long Alone waits for another process, and how often it looks.
const (
	aloneWait  = 10 * time.Second
	aloneAgain = 5 * time.Millisecond
)

// Alone calls change while nobody else's change of the file at path is under way, in this process or
// another one: change reads the file, and writes it anew. The lock is a file beside it, which stays,
// and ends with the process. It cannot be taken twice.
func Alone(path string, change func() error) error {
	fd, err := openFd(path+".lock", syscall.O_RDWR|syscall.O_CREAT|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path + ".lock", Err: err}
	}
	f := os.NewFile(uintptr(fd), path+".lock")
	defer f.Close()
	for until := time.Now().Add(aloneWait); ; time.Sleep(aloneAgain) {
		err := again(func() error { return syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) })
		switch {
		case err == nil:
			return change()
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return &fs.PathError{Op: "lock", Path: path + ".lock", Err: err}
		case time.Now().After(until):
			return fmt.Errorf("%s: nothing was changed: another process has been changing it for %s: try again", path, aloneWait)
		}
	}
}
