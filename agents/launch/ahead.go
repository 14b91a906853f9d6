package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sluice/internal/layout"
)

// aheadFolder is a folder in layout.GitsDir, beside those of runs. No launch sees it.
const aheadFolder = ".ahead"

// How many spares are kept: two launches may begin at once.
const (
	aheadFolders = 2 * 3 // an inbox, the run's folder in it, a home
	aheadFiles   = 2 * 1 // the note about a git folder
)

// ahead keeps empty folders and files, created in advance. Renaming one takes a tenth of the time
// of creating it: the file system must find space past what was freed recently.
type ahead struct {
	dir string

	filling sync.Mutex // guards swept and n
	swept   bool       // the spares of an earlier process were removed
	n       int

	mu      sync.Mutex
	folders []string
	files   []string
}

// folder creates a missing folder and its missing parents.
func (a *ahead) folder(path string) error {
	if layout.IsDir(path) {
		return nil
	}
	if spare := a.take(&a.folders); spare != "" {
		if os.Rename(spare, path) == nil {
			return nil
		}
		a.put(&a.folders, spare)
	}
	return os.MkdirAll(path, 0o700)
}

// file writes a file and creates its folder if missing.
func (a *ahead) file(path string, data []byte) error {
	if spare := a.take(&a.files); spare != "" {
		if os.WriteFile(spare, data, 0o600) == nil && os.Rename(spare, path) == nil {
			return nil
		}
		_ = os.Remove(spare)
	}
	return layout.WriteBriefly(path, data)
}

func (a *ahead) take(list *[]string) (spare string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(*list); n > 0 {
		spare, *list = (*list)[n-1], (*list)[:n-1]
	}
	return spare
}

func (a *ahead) put(list *[]string, spare string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*list = append(*list, spare)
}

func (a *ahead) lacks(list *[]string, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(*list) < most
}

// fill creates the missing spares.
func (a *ahead) fill() error {
	a.filling.Lock()
	defer a.filling.Unlock()
	if !a.swept {
		if err := os.RemoveAll(a.dir); err != nil {
			return err
		}
		if err := os.MkdirAll(a.dir, 0o700); err != nil {
			return err
		}
		a.swept = true
	}
	for _, kind := range []struct {
		list *[]string
		most int
		make func(path string) error
	}{
		{&a.folders, aheadFolders, func(path string) error { return os.Mkdir(path, 0o700) }},
		{&a.files, aheadFiles, func(path string) error { return os.WriteFile(path, nil, 0o600) }},
	} {
		for a.lacks(kind.list, kind.most) {
			a.n++
			path := filepath.Join(a.dir, fmt.Sprint(a.n))
			if err := kind.make(path); err != nil {
				return err
			}
			a.put(kind.list, path)
		}
	}
	return nil
}
