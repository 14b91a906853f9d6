package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrGone is a folder that has gone and is not ours to make.
var ErrGone = errors.New("its folder is gone")

// MkdirBelow makes the folder dir, and those between it and base, but never base: where that has
// gone, as a repo that was moved or a disk that is not mounted, the error is ErrGone and nothing is
// made.
func MkdirBelow(base, dir string, perm fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	rel, err := filepath.Rel(base, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s: it is not below %s", dir, base)
	}
	if rel != "." && MkdirPlain(dir, perm) {
		return nil
	}
	root, err := os.OpenRoot(base)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", base, ErrGone)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(rel, perm)
}
