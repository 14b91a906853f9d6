package daemon

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFolder locks nothing: Windows has no locks on folders, and in a repo no file is to be made for it.
func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// lockDir locks a file in the folder: Windows does not delete a file that is open.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		f.Close()
		return nil, errBusy
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mayWrite says that this process may change what lies in dir: what it may not, the first write finds out.
func mayWrite(string) bool { return true }
