// Package refs finds the commits and pull requests with which attempts report that they are done.
package refs

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/watcher"
)

// Options configures Refs. All but Git are required.
type Options struct {
	Layout  layout.Layout
	Notes   *health.Notes
	Git     *git.Repo // nil, or plain: nothing to look at
	Watcher *watcher.Watcher
	Poll    func() time.Duration                  // how often the forge is asked
	Own     func(key string) (tree.Private, bool) // a launch's own git folder
	Inside  func(tree.Private) tree.Inside        // how git runs there
	Now     func() time.Time
}

// Refs finds signals in one repo.
type Refs struct {
	layout.Layout
	*health.Notes
	opt Options

	mu      sync.Mutex
	stirred chan struct{}            // closed when a ref may have changed, then replaced
	ends    map[string]chan struct{} // by attempt
}

// New returns the Refs of a repo.
func New(o Options) *Refs {
	return &Refs{Layout: o.Layout, Notes: o.Notes, opt: o, stirred: make(chan struct{}),
		ends: map[string]chan struct{}{}}
}

// Hint takes a name from the shared watcher's Hints; it ignores other repos.
func (r *Refs) Hint(name string) {
	if !r.opt.Git.Checkout() || name != r.opt.Git.CommonDir() {
		return
	}
	r.mu.Lock()
	close(r.stirred)
	r.stirred = make(chan struct{})
	r.mu.Unlock()
}

// Intervals and limits of the search for commits and pull requests.
const (
	refsEvery  = 2 * time.Second // without hints
	beginEvery = 200 * time.Millisecond
	maxCommits = 10_000 // examined at once
	maxTwins   = 20_000 // commits before the attempt that may have copies
	maxSubject = 1000
	maxPart    = 1 << 20 // of a stand-in's record
)

// Look looks for an attempt's commit or pull request until ctx ends.
func (r *Refs) Look(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	w := lookout{r: r, job: j, st: j.Spec.Step(j.Step), emit: emit, told: map[string]bool{}}
	if w.st != nil && w.st.Signal.Type == engine.SignalPull && job.StandsIn(j, w.st) {
		w.standIn(ctx)
		return nil
	}
	if !r.opt.Git.Checkout() || w.st == nil || j.Attempt == nil {
		r.Note(j.Key, "there is no git here to see its signal in")
		<-ctx.Done()
		return nil
	}
	for { // it is recorded before anything is launched or offered
		err := layout.Load(r.AttemptFile(j.Run, w.st.ID, j.Attempt.N, layout.BeganFile), &w.b)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			r.Note(j.Key, err.Error())
		}
		if !health.Wait(ctx, beginEvery) {
			return nil
		}
	}
	if w.st.Signal.Type == engine.SignalPull {
		w.pulls(ctx)
	} else {
		w.commits(ctx)
	}
	r.Note(j.Key, "")
	return nil
}

// lookout looks for one attempt's signal in git.
type lookout struct {
	r    *Refs
	job  job.Job
	st   *engine.Step
	b    tree.Begin
	emit func(engine.Event)
	told map[string]bool // reported commits and pull requests

	print string          // of the launch's own git folder, at the last look
	old   map[string]bool // authors of marked commits from before the attempt; nil = not looked up yet
}
