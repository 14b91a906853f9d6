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
	tmp, err := writeTmp(filepath.Dir(path), data, perm)
	if err != nil {
		return unnamed(path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp)))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteNew puts data at path as Write does, but never replaces: where path exists (a dangling link
// counts) it changes nothing and returns an error that is fs.ErrExist.
func WriteNew(path string, data []byte, perm fs.FileMode) error {
	tmp, err := writeTmp(filepath.Dir(path), data, perm)
	if err != nil {
		return unnamed(path, err)
	}
	if err := renameNew(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp)))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
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
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if err := f.Chmod(perm); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return f.Name(), nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}
