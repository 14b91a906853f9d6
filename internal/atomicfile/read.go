package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenRegular reads the regular file name (a path below dir) whole, at most maxBytes of it. It
// follows no link below dir, nor dir itself where that is one, and never blocks on what is there.
// Errors wrap ErrNotRegular, ErrTooLarge, fs.ErrNotExist or what the system said; the Stat is
// filled in as far as it was known.
//
// The Stat is of the moment before the bytes were read: a file written to meanwhile differs from it at
// the next look.
func OpenRegular(dir, name string, maxBytes int64) (data []byte, st Stat, err error) {
	fd, st, err := open(dir, name)
	if err != nil {
		return nil, st, err
	}
	if st.Size > maxBytes {
		err = fmt.Errorf("%s: %w: %d bytes, at most %d", name, ErrTooLarge, st.Size, maxBytes)
	} else if data, err = readFd(fd, st.Size, maxBytes+1); err == nil && int64(len(data)) > maxBytes {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, ErrTooLarge, maxBytes)
	}
	if err = errors.Join(err, closeFd(fd)); err != nil {
		return nil, st, err
	}
	return data, st, nil
}

// Read reads the regular file at path under the rules of OpenRegular.
func Read(path string, maxBytes int64) ([]byte, error) {
	data, _, err := OpenRegular(filepath.Dir(path), filepath.Base(path), maxBytes)
	return data, err
}

// Open opens the regular file name (a path below dir) for reading under the rules of OpenRegular, for
// callers that read as a stream. The caller closes it.
func Open(dir, name string) (*os.File, Stat, error) {
	fd, st, err := open(dir, name)
	if err != nil {
		return nil, st, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir, name)), st, nil
}

// open is Open with a bare descriptor: an os.File costs six system calls more.
func open(dir, name string) (fd int, st Stat, err error) {
	// The look before the open keeps devices, whose opening has effects, from being opened at all; the
	// open itself is what is relied on, since the name can be swapped in between.
	st, err = Lstat(dir, name)
	if err != nil {
		return -1, st, err
	}
	if !st.Mode.IsRegular() {
		return -1, st, notRegular(name, st.Mode)
	}
	fd, err = openBeneath(dir, name)
	if err != nil {
		return -1, st, err
	}
	now, err := statFd(fd)
	if err == nil {
		if st = now; !st.Mode.IsRegular() {
			err = notRegular(name, st.Mode)
		}
	}
	if err != nil {
		return -1, st, errors.Join(err, closeFd(fd))
	}
	return fd, st, nil
}

// Lstat tells the state of name below dir without following a link at its end.
func Lstat(dir, name string) (Stat, error) {
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return Stat{}, err
	}
	return StatOf(info), nil
}

func notRegular(name string, mode fs.FileMode) error {
	kind := "a special file"
	switch {
	case mode&fs.ModeSymlink != 0:
		kind = "a link"
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%q is %s: %w", name, kind, ErrNotRegular)
}
