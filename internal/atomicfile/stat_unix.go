//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func statOf(info fs.FileInfo) Stat {
	st := Stat{Size: info.Size(), ModTime: info.ModTime(), Mode: info.Mode()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		// The widths differ from system to system.
		st.Dev, st.Ino, st.Nlink = uint64(sys.Dev), uint64(sys.Ino), uint64(sys.Nlink)
		st.Changed = changed(sys)
	}
	return st
}

func isCrossDevice(err error) bool { return errors.Is(err, syscall.EXDEV) }

// OpenDir opens a folder for listing; a link to one is an error.
func OpenDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// SyncDir has the entries of dir outlive a crash.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	// Some file systems cannot sync a folder and say so with EINVAL: nothing more is to be had there.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
