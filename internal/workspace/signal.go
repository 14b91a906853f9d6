package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/journal"
)

// PutSignal writes a whole file into the inbox, and never over a waiting one.
func (p *Workspace) PutSignal(run, name string, data []byte) (string, error) {
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.SignalsDir))
	if run != "" && ids.ValidRun(run) {
		dir = filepath.Join(dir, run)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	err := atomicfile.WriteNew(file, data, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", fault.Failed("sluice has not read it yet; remove it if you have changed your mind",
			"%s exists already", layout.ShortPath(file))
	}
	return file, err
}

// SignedAs returns what a signed answer names this repo by: the journal's id, which is the same on
// each machine; of a journal without one, the repo's id on this machine.
func (p *Workspace) SignedAs() string { return cmp.Or(journal.IDIn(p.State), p.ID) }
