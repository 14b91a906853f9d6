// Package folders manages the folders in which attempts work: where one begins and from which
// commit, what is taken and bound to a pass, and where taken work goes. Package tree handles one
// commit of one folder; this package does so for a run's attempts. It keeps a record of each folder
// in the state folder, each under its own lock.
//
// Read begin.go (an attempt's folder) and find.go (what it begins from) first, then records.go (a
// folder's record), taking.go (its work), left.go (what earlier runs left), digest.go (what a pass is
// bound to), branch.go, advance.go, rewind.go and landing.go (branches). looking.go is for steps that
// only look, carry.go and inputs.go bring other steps' outputs, values.go writes computed values,
// runfolder.go creates a run's folder.
package folders

import (
	"context"
	"fmt"
	"sync"

	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/memo"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// Options are what Folders need. Git is optional.
type Options struct {
	Layout   layout.Layout
	Notes    *health.Notes
	Git      *git.Repo                // nil: there is no git, and nothing is taken
	Settings func() settings.Settings // for what in them decides about the work
	Hidden   []string                 // sluice's own folders beside the state folder
	Held     func() bool              // launches have a sandbox
	Path     func() string            // in which launches find programs
	// Request lands work as a pull request.
	Request func(ctx context.Context, j job.Job, w tree.Work, l tree.Landing) error
	Pulls   func(context.Context) (map[string]string, error)
}

// Folders are the folders of one repo's attempts.
type Folders struct{ branches }

type (
	branches struct{ places }  // the run's branch: forward, back, and onto the person's
	places   struct{ takings } // where a step works
	takings  struct{ finds }   // the tree of its work
	finds    struct{ ground }  // what was there before it
)

// ground is what all need: the repo, its own files and a folder's records.
type ground struct {
	layout.Layout
	*health.Notes
	opt Options

	// Locked for writing while sluice writes its own file into a checkout, and for reading while a
	// folder is taken: the file's temporary name must not be taken.
	writing sync.RWMutex

	placing sync.Mutex // held while a worktree is looked for and created
	records git.Locks  // held while a folder's record changes

	lawBefore memo.Memo[string, lawBefore] // of a tree and the commands of a law

	pointing sync.Mutex // held while runs/last changes
	landing  sync.Mutex // held while a branch of a person's moves: each landing starts from the last one
}

// New returns the Folders of a repo. A store of sluice's ignores sluice's own files from then on.
func New(o Options) (*Folders, error) {
	f := &Folders{}
	f.ground = ground{Layout: o.Layout, Notes: o.Notes, opt: o}
	if o.Git == nil || !o.Git.Plain() {
		return f, nil
	}
	if err := o.Git.PassOver(f.OwnPaths(tree.Begin{Top: f.Root})); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	return f, nil
}

// Alone runs write while no folder is being taken.
func (x *ground) Alone(write func() error) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	return write()
}
