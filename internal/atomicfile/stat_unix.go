//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// StatOf converts what the os package found.
func StatOf(info fs.FileInfo) Stat {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return statSys(sys, info.Mode())
	}
	return Stat{Size: info.Size(), ModTime: info.ModTime(), Mode: info.Mode()}
}

func statSys(sys *syscall.Stat_t, mode fs.FileMode) Stat {
	// The widths differ from system to system.
	return Stat{Dev: uint64(sys.Dev), Ino: uint64(sys.Ino), Nlink: uint64(sys.Nlink), Uid: sys.Uid, Size: sys.Size,
		Mode: mode, ModTime: modified(sys), Changed: changed(sys)}
}

// statFd is the Stat of an open file. What is not regular has only fs.ModeIrregular for its type.
func statFd(fd int) (Stat, error) {
	var sys syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(fd, &sys) }); err != nil {
		return Stat{}, os.NewSyscallError("fstat", err)
	}
	mode := permOf(uint32(sys.Mode))
	if sys.Mode&syscall.S_IFMT != syscall.S_IFREG {
		mode |= fs.ModeIrregular
	}
	return statSys(&sys, mode), nil
}

// permOf is the mode of a file without its kind, from what the system says.
func permOf(sys uint32) fs.FileMode {
	mode := fs.FileMode(sys) & fs.ModePerm
	for _, b := range [...]struct {
		bit uint32
		is  fs.FileMode
	}{{syscall.S_ISUID, fs.ModeSetuid}, {syscall.S_ISGID, fs.ModeSetgid}, {syscall.S_ISVTX, fs.ModeSticky}} {
		if sys&b.bit != 0 {
			mode |= b.is
		}
	}
	return mode
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
