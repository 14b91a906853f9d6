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
func renameNew(src, dst string) error { return renameNewAt(unix.AT_FDCWD, src, src, dst) }

// renameNewAt renames the file name in an open folder, whose path was src.
func renameNewAt(at int, name, src, dst string) error {
	err := renameat2("rename", at, name, dst, unix.RENAME_NOREPLACE)
	if errors.Is(err, errors.ErrUnsupported) {
		return renameByLink(src, dst)
	}
	return err
}

// renameFrom opens dir, through no link below base, and returns a renameNew of a file in what was opened, for use until
// done is called.
func renameFrom(base, dir, name string) (rename func(dst string) error, done func() error, err error) {
	src, fd := filepath.Join(dir, name), -1
	rel, err := filepath.Rel(base, dir)
	if err == nil {
		fd, err = openIn(base, 0, rel, unix.O_PATH|unix.O_DIRECTORY)
	}
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // as for openBeneath
		return func(dst string) error { return renameNew(src, dst) }, func() error { return nil }, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	case err != nil:
		return nil, nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return func(dst string) error { return renameNewAt(fd, name, src, dst) }, func() error { return closeFd(fd) }, nil
}

// renameat2 returns errors.ErrUnsupported where old kernels, NFS and some FUSE file systems do not know the flag.
func renameat2(op string, at int, from, to string, flag uint) error {
	err := unix.Renameat2(at, from, unix.AT_FDCWD, to, flag)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return errors.ErrUnsupported
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
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
	fd, err := openat2(unix.AT_FDCWD, path, unix.O_PATH, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return filepath.EvalSymlinks(path)
	}
	return filepath.Clean(path), closeFd(fd)
}

// openBeneath opens name below dir; no part of name may be a link, whoever swaps it in and when.
func openBeneath(dir, name string) (int, error) {
	// One call, where no link is on the way to dir either.
	if name == filepath.Base(name) && filepath.IsAbs(dir) {
		fd, err := openat2(unix.AT_FDCWD, filepath.Join(dir, name), readHow, unix.RESOLVE_NO_SYMLINKS)
		if err == nil {
			return fd, nil
		}
	}
	fd, err := openIn(dir, unix.O_NOFOLLOW, name, readHow)
	path := filepath.Join(dir, name)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// Before Linux 5.6, or under a seccomp filter that refuses what it does not know.
		fd, err = openFd(path, readHow, 0)
	}
	switch {
	case errors.Is(err, unix.ELOOP):
		return -1, fmt.Errorf("%q is a link or behind one: %w", name, ErrNotRegular)
	case errors.Is(err, unix.ENXIO):
		return -1, fmt.Errorf("%q is a socket or a device: %w", name, ErrNotRegular)
	case err != nil:
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openIn opens a folder, with further flags, and then name in it; no part of name may be a link.
func openIn(dir string, flags int, name string, how uint64) (int, error) {
	d, err := openFd(dir, unix.O_PATH|unix.O_DIRECTORY|flags, 0)
	if err != nil {
		return -1, err
	}
	fd, err := openat2(d, name, how, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
	if e := closeFd(d); e != nil && err == nil {
		return -1, errors.Join(e, closeFd(fd))
	}
	return fd, err
}

// readHow opens a file that somebody else may have put there, for reading.
const readHow = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW

func openat2(at int, path string, flags, resolve uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for range openTries {
		fd, err = unix.Openat2(at, path, &how)
		// EAGAIN: the kernel met a rename on the way and could not be sure. EINTR as ever.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// openTries ends the tries at a file with a lease (fcntl(2)), which is EAGAIN for 45 seconds.
const openTries = 100

// PlainDir reports whether path, an absolute one, is a folder with no link on the way. It is false too
// where the system does not say (before Linux 5.6).
func PlainDir(path string) bool {
	fd, err := plainDir(path)
	return err == nil && closeFd(fd) == nil
}

func plainDir(path string) (fd int, err error) {
	if !filepath.IsAbs(path) {
		return -1, unix.EINVAL
	}
	return openat2(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
}

// MkdirPlain makes a folder in one that is there, with no link on the way. It reports whether it did:
// if not, ask MkdirBelow why.
func MkdirPlain(dir string, perm fs.FileMode) bool {
	fd, err := plainDir(filepath.Dir(dir))
	if err != nil {
		return false
	}
	err = unix.Mkdirat(fd, filepath.Base(dir), uint32(perm.Perm()))
	return closeFd(fd) == nil && err == nil
}

// exchange gives each of two files the other's name, in one step; errors.ErrUnsupported where that is not known.
func exchange(a, b string) error {
	return renameat2("exchange", unix.AT_FDCWD, a, b, unix.RENAME_EXCHANGE)
}
