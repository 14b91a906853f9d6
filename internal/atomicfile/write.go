package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// tmpPattern makes dotfiles, which no scan of ours reads. The name is short whatever the target's is:
// a target of 255 bytes has no room for a suffix.
const tmpPattern = ".sluice-tmp-*"

// Write puts data at path with the permissions perm, replacing what is there. When it returns nil the
// new content outlives a crash; when it fails the old content is untouched. The folder must exist.
// A link at path is replaced, not followed.
func Write(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, os.Rename)
}

// WriteNew puts data at path as Write does, but never replaces: where path exists (a dangling link
// counts) it changes nothing and returns an error that is fs.ErrExist.
func WriteNew(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, renameNew)
}

func write(path string, data []byte, perm fs.FileMode, rename func(from, to string) error) error {
	tmp, err := writeTmp(filepath.Dir(path), data, perm)
	if err == nil {
		if err = rename(tmp, path); err != nil {
			err = errors.Join(err, os.Remove(tmp))
		} else {
			err = SyncDir(filepath.Dir(path))
		}
	}
	if err != nil {
		return unnamed(path, err)
	}
	return nil
}

// unnamed is an error of a temporary file for path, without its name: who repeats a write says the same then.
func unnamed(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

// writeTmp leaves data, synced, in a dotfile of dir and returns its path. It leaves nothing on failure.
func writeTmp(dir string, data []byte, perm fs.FileMode) (path string, err error) {
	f, err := os.CreateTemp(dir, tmpPattern)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
