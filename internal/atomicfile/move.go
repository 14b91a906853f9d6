package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// dirPerm is for the folders that Move makes.
	dirPerm fs.FileMode = 0o700
	// maxSuffix bounds how many taken names Move tries before it gives up.
	maxSuffix = 100_000
	// maxName is how many bytes a name may have on every file system there is.
	maxName = 255
)

// Move renames src to dst and never overwrites: where dst is taken it becomes dst with a number before its ending
// (x-done.2.json). It makes dst's folder, returns the name that src has now, and syncs both folders. A link is moved,
// not followed. Between file systems a regular file is copied, synced and then removed, and a link made again; anything
// else is an error there.
func Move(src, dst string) (string, error) {
	name, err := move(src, dst, func(dst string) error { return renameNew(src, dst) })
	if err != nil {
		return "", err
	}
	if err := errors.Join(SyncDir(filepath.Dir(name)), SyncDir(filepath.Dir(src))); err != nil {
		return name, fmt.Errorf("move %s to %s: %w", src, name, err)
	}
	return name, nil
}

// MoveFrom is Move for the file name in dir, a folder at or below base, and syncs nothing: a power cut may undo it. A
// link between base and dir leads nowhere (fs.ErrNotExist), whoever swaps it in and when. Where the system or the file
// system does not know how (macOS, before Linux 5.6, NFS), and between file systems, dir is only looked at before.
func MoveFrom(base, dir, name, dst string) (string, error) {
	rename, done, err := renameFrom(base, dir, name)
	if err != nil {
		return "", err
	}
	to, err := move(filepath.Join(dir, name), dst, rename)
	return to, errors.Join(err, done())
}

// move renames src, by a function that never overwrites.
func move(src, dst string, rename func(dst string) error) (string, error) {
	first := moveTo(src, dst, rename)
	if errors.Is(first, fs.ErrNotExist) {
		if _, err := os.Lstat(src); err != nil {
			return "", fmt.Errorf("move %s: %w", src, err)
		}
		if err := os.MkdirAll(filepath.Dir(dst), dirPerm); err != nil {
			return "", fmt.Errorf("move %s: %w", src, err)
		}
		first = moveTo(src, dst, rename)
	}
	taken := func(n int) bool {
		_, err := os.Lstat(numbered(dst, n))
		return err == nil
	}
	for n := 1; n <= maxSuffix; n = nextFree(n, taken) {
		name, err := dst, first
		if n > 1 {
			name = numbered(dst, n)
			err = moveTo(src, name, rename)
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("move %s to %s: %w", src, name, err)
		}
		return name, nil
	}
	return "", fmt.Errorf("move %s to %s: too many files of this name: clear the folder", src, dst)
}

// nextFree returns a number after n, which is taken, that was not. It looks in steps that double
// and then between the last two: of very many doubles not every one is met.
func nextFree(n int, taken func(int) bool) int {
	step := 1
	for n+step <= maxSuffix && taken(n+step) {
		n, step = n+step, 2*step
	}
	free := min(n+step, maxSuffix+1)
	for free-n > 1 { // n is taken
		if mid := n + (free-n)/2; taken(mid) {
			n = mid
		} else {
			free = mid
		}
	}
	return free
}

// numbered puts n before the ending of path, from 2 on; a name that is too long for it is cut.
func numbered(path string, n int) string {
	if n < 2 {
		return path
	}
	dir, base := filepath.Split(path)
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if stem == "" || len(ext) > maxName/2 {
		stem, ext = base, ""
	}
	ending := "." + strconv.Itoa(n) + ext
	return dir + CutName(stem, len(ending)) + ending
}

// CutName cuts a name so that an ending of so many bytes has room behind it on every file system, and not through a
// character.
func CutName(name string, ending int) string {
	cut := maxName - ending
	if len(name) <= cut {
		return name
	}
	for range utf8.UTFMax {
		if !utf8.RuneStart(name[cut]) {
			cut--
		}
	}
	return name[:cut]
}

func moveTo(src, dst string, rename func(dst string) error) error {
	err := rename(dst)
	if err == nil || !isCrossDevice(err) {
		return err
	}
	info, err := os.Lstat(src)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(src)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, dst); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		if err := copyNew(src, dst, info.Mode().Perm()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w, and the target is on another file system", ErrNotRegular)
	}
	return os.Remove(src)
}

// copyNew copies the regular file src to dst, which must not exist, by way of a synced dotfile.
func copyNew(src, dst string, perm fs.FileMode) (err error) {
	in, _, err := Open(filepath.Dir(src), filepath.Base(src))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.CreateTemp(filepath.Dir(dst), tmpPattern)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(perm), out.Sync(), out.Close())
	if err == nil {
		err = renameNew(out.Name(), dst)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// renameByLink is the rename that does not overwrite for systems and file systems that have none.
func renameByLink(src, dst string) error {
	err := os.Link(src, dst)
	if err == nil {
		return os.Remove(src)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || isCrossDevice(err) {
		return err
	}
	// No hard links here, or src is a folder. What is left has a gap between the look and the rename,
	// in which another writer's file could be replaced.
	if _, err := os.Lstat(dst); err == nil {
		return &os.LinkError{Op: "rename", Old: src, New: dst, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(src, dst)
}
