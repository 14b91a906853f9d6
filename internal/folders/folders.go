// Package folders has the folders in which attempts work: where one begins and from which commit, what of it is taken and
// what that is bound to, and where taken work goes. What package tree does with one commit of one folder, this package does
// for the attempts of a run; it keeps what is known of each folder in the state folder, under a lock for each record.
//
// Read first begin.go (an attempt's folder, found or made) and find.go (what it begins from), records.go (what is known of
// a folder), taking.go (its work), digest.go (what a pass is bound to), branch.go, advance.go, rewind.go and landing.go (branches).
// looking.go is the way of steps that only look, carry.go and inputs.go bring the outputs of other steps, values.go writes
// what a spec computes, runfolder.go creates the folder of a run.
package folders

import (
	"context"
	"sync"

	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Options are what Folders work with. All are needed, but for Git.
type Options struct {
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
	opt Options

	// Held for writing where sluice writes a file of its own into a checkout, and for reading where a folder is taken: the
	// file's first name is no work.
	writing sync.RWMutex

	placing sync.Mutex // held while a worktree is looked for, and made where it is not there
	records locks      // held where the record of a folder is changed

	pointing sync.Mutex // held while runs/last is made to lead elsewhere
}

// New makes the Folders of a repo.
func New(o Options) *Folders {
	return &Folders{Layout: o.Layout, Notes: o.Notes, opt: o}
}

// Alone runs write while no folder is taken.
func (x *Folders) Alone(write func() error) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	return write()
}
