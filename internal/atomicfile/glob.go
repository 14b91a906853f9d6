package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Glob returns the paths below a folder that match a pattern of package path, sorted. The folder's own path may have
// any characters.
func Glob(dir, pattern string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(dir), pattern)
	for i, name := range found {
		found[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return found, err
}
