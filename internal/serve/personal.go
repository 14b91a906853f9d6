package serve

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"sluice/internal/atomicfile"
	"sluice/internal/settings"
	"sluice/internal/workspace"
)

// personal are the settings of all repos without a settings file of their own, as last read. Nobody changes them.
type personal struct {
	mu    sync.Mutex
	known bool
	file  atomicfile.Stat // of the person's file when they were read; zero: there was none
	all   settings.Settings
}

// settings returns those of a repo whose files have these stamps.
func (w *Parts) settings(root string, at settings.Stamps) (settings.Settings, error) {
	read := func(root string) (settings.Settings, error) {
		l, err := workspace.Settings(w.Console, root, w.Set)
		if err != nil {
			return settings.Settings{}, err
		}
		return l.Settings, nil
	}
	if _, err := os.Lstat(settings.ProjectFile(root)); !errors.Is(err, fs.ErrNotExist) {
		return read(root)
	}
	p := &w.personal
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && p.file == at[0] {
		return p.all, nil
	}
	all, err := read("") // a file that this repo may have by now is not everybody's
	p.known, p.file, p.all = err == nil, at[0], all
	return all, err
}

// forget has them read again.
func (p *personal) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = false
}
