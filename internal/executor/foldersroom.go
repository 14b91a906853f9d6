package executor

import (
	"context"
	"sync"

	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// FoldersOptions are what Folders work with. All are needed, but for Git.
type FoldersOptions struct {
	Layout   layout.Layout
	Notes    *health.Notes
	Git      *git.Repo                // nil: there is no git, and nothing is taken
	Settings func() settings.Settings // for what in them decides over the work
	Hidden   []string                 // folders of sluice's own, beside the state folder
	Environ  []string                 // for the program that asks for a pull request
	Held     func() bool              // launches have a sandbox
	Pulls    func(context.Context) (map[string]string, error)
	Logf     func(string, ...any)
}

// Folders are the folders in which the attempts of one repo work.
type Folders struct {
	layout.Layout
	*health.Notes
	opt FoldersOptions

	// Held for writing where sluice writes a file of its own into a checkout, and for reading where a folder is taken: the
	// file's first name is no work.
	writing sync.RWMutex

	placing sync.Mutex // held while a worktree is looked for, and made where it is not there
	records locks      // held where the record of a folder is changed
}

// NewFolders makes the Folders of a repo.
func NewFolders(o FoldersOptions) *Folders {
	return &Folders{Layout: o.Layout, Notes: o.Notes, opt: o}
}

// Alone runs write while no folder is taken.
func (x *Folders) Alone(write func() error) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	return write()
}
