package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// renameNew renames src to dst and fails with fs.ErrExist where dst is there.
func renameNew(src, dst string) error {
	err := unix.Renameat2(unix.AT_FDCWD, src, unix.AT_FDCWD, dst, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		// Old kernels, NFS and some FUSE file systems do not know the flag.
		return renameByLink(src, dst)
	}
	return &os.LinkError{Op: "rename", Old: src, New: dst, Err: err}
}

// MountID names the mount that dir is on, never given to another one as long as the machine runs
// (Linux 6.8; before, one that has gone may give its number on); "" where the system does not tell.
func MountID(dir string) string {
	for _, mask := range []int{unix.STATX_MNT_ID_UNIQUE, unix.STATX_MNT_ID} {
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, dir, 0, mask, &st); err == nil && st.Mask&uint32(mask) != 0 {
			return strconv.FormatUint(st.Mnt_id, 10)
		}
	}
	return ""
}

// RealPath is filepath.EvalSymlinks: two calls, and not one for each part, where no link is on the way.
func RealPath(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return filepath.EvalSymlinks(path)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return filepath.EvalSymlinks(path)
	}
	return filepath.Clean(path), unix.Close(fd)
}

// openBeneath opens name below dir; no part of name may be a link, whoever swaps it in and when.
func openBeneath(dir, name string) (f *os.File, err error) {
	d, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := d.Close(); e != nil && err == nil {
			f, err = nil, errors.Join(e, f.Close())
		}
	}()
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	var fd int
	for {
		fd, err = unix.Openat2(int(d.Fd()), name, &how)
		// EAGAIN: the kernel met a rename on the way and could not be sure. EINTR as ever.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// Before Linux 5.6, or under a seccomp filter that refuses what it does not know.
		return openNoFollow(filepath.Join(dir, name), name)
	}
	return wrapFd(fd, filepath.Join(dir, name), name, err)
}

func openNoFollow(path, name string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	return wrapFd(fd, path, name, err)
}

func wrapFd(fd int, path, name string, err error) (*os.File, error) {
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%q is a link or behind one: %w", name, ErrNotRegular)
	case errors.Is(err, unix.ENXIO):
		return nil, fmt.Errorf("%q is a socket or a device: %w", name, ErrNotRegular)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// exchange gives each of two files the other's name, in one step; errors.ErrUnsupported where that is not known.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return errors.ErrUnsupported
	}
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
}
