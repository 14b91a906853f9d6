// Package inbox reads the files put into inboxes, and moves them away once they are taken in.
// Inboxes are .workflow/signals and the runs' folders in it, those in worktrees, and a held
// launch's own.
//
// Reading order: inbox.go (what is watched, and which folder a hint is about), boxes.go (which
// folders a scan reads), scan.go (what a file in them says), proven.go (signed answers), words.go
// (the end of a step waits for its signal), private.go (a held launch's own inbox), move.go (where
// a file goes).
package inbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/watcher"
)

// Options configures an Inbox. All are required, but Journal and Tracked.
type Options struct {
	Layout      layout.Layout
	Notes       *health.Notes
	Watcher     *watcher.Watcher
	Judge       Judge
	Launches    Launches
	Repo        string               // repo-id: an answer signed for another repo does not count
	Journal     func() string        // the journal's id, which answers are signed for too; may return ""
	Settle      func() time.Duration // how long a file that may still grow must be unchanged
	Corrections int                  // how often an agent is asked again at most
	Now         func() time.Time
	// Tracked reports whether git tracks a file of the checkout at top. While it fails, the file waits.
	Tracked func(ctx context.Context, top, file string) (bool, error)
}

// Judge returns what an answer is about.
type Judge interface {
	// DigestNow returns the current digest of what a round was opened on.
	DigestNow(ctx context.Context, q job.Reviewed) (string, error)
}

// Launches say who may be trusted.
type Launches interface {
	// Level returns what separated the agents of a run from its gates.
	Level(run string) (level, why string)
	// SetLive sets the live runs, and the launches on the record. It is called before a full scan reads
	// its first folder.
	SetLive(runs, launches []string)
}

// Inbox is the inboxes of one repo.
type Inbox struct {
	layout.Layout
	*health.Notes
	opt   Options
	hints chan struct{}

	moving atomic.Int32 // running moves

	one      sync.Mutex      // held by a scan; guards the next two
	noStrays atomicfile.Stat // of the inbox when it only had the folders of liveThen live runs
	liveThen int

	mu      sync.Mutex
	watched map[string]bool       // folders given to the watcher
	hinted  map[string]bool       // watched folders that may have changed
	later   map[string]bool       // folders to be hinted at after a pause
	places  map[string]string     // inboxes in worktrees that are plain folders -> key of their checkout
	placed  map[string][]string   // run -> its inboxes among places
	private map[string]privateBox // inboxes of held launches
	dropped map[string]int        // launch -> files of its inbox that were counted but not kept
}

// New creates the inbox of a repo if it is missing, and watches it. End the watch with Unwatch.
func New(o Options) (*Inbox, error) {
	x := &Inbox{Layout: o.Layout, Notes: o.Notes, opt: o, hints: make(chan struct{}, 1),
		watched: map[string]bool{}, later: map[string]bool{},
		hinted: map[string]bool{}, places: map[string]string{}, placed: map[string][]string{},
		private: map[string]privateBox{}, dropped: map[string]int{}}
	if err := x.MakeBelow(layout.SignalsDir, 0o755); err != nil {
		x.Logf("the inbox could not be made: %v", err)
	}
	return x, x.watch(x.Signals())
}

// Unwatch ends the watch of all folders.
func (x *Inbox) Unwatch() {
	x.mu.Lock()
	dirs := slices.Sorted(maps.Keys(x.watched))
	x.watched = map[string]bool{}
	x.mu.Unlock()
	for _, dir := range dirs {
		x.opt.Watcher.Remove(dir)
	}
}

// Degraded returns which folders are not watched as they should be.
func (x *Inbox) Degraded() (out []string) {
	x.mu.Lock()
	dirs := slices.Sorted(maps.Keys(x.watched))
	x.mu.Unlock()
	for _, dir := range dirs {
		if mode, degraded := x.opt.Watcher.Health(dir); degraded != "" {
			out = append(out, fmt.Sprintf("degraded: %s (%s): %s", x.Shown(dir), mode, degraded))
		}
	}
	return out
}

func (x *Inbox) watch(dir string) error {
	x.mu.Lock()
	known := x.watched[dir]
	x.mu.Unlock()
	if known {
		return nil
	}
	if err := x.opt.Watcher.Add(dir); err != nil {
		return err
	}
	x.mu.Lock()
	x.watched[dir] = true
	x.mu.Unlock()
	return nil
}

func (x *Inbox) unwatch(dir string) {
	x.mu.Lock()
	delete(x.watched, dir)
	x.mu.Unlock()
	x.opt.Watcher.Remove(dir)
}

// Hint takes a name from the shared watcher's Hints; it ignores other repos.
func (x *Inbox) Hint(name string) {
	x.mu.Lock()
	ours := x.watched[name]
	if ours {
		x.hinted[name] = true
	}
	x.mu.Unlock()
	if ours {
		x.nudge()
	}
}

// lookAt treats a folder as if it had changed.
func (x *Inbox) lookAt(dir string) {
	x.mu.Lock()
	x.hinted[dir] = true
	x.mu.Unlock()
	x.nudge()
}

func (x *Inbox) nudge() {
	select {
	case x.hints <- struct{}{}:
	default:
	}
}

// Hinted returns the folders that may have changed: see daemon.World.
func (x *Inbox) Hinted() []job.Place {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]job.Place, 0, len(x.hinted))
	for dir := range x.hinted {
		p := job.Place{Dir: dir}
		if filepath.Dir(dir) == x.Signals() {
			p.Run = filepath.Base(dir)
		} else if b, ok := x.private[dir]; ok {
			p.Run = b.run
		} else if b, ok := x.private[filepath.Dir(dir)]; ok {
			p.Run = b.run
		}
		out = append(out, p)
	}
	clear(x.hinted)
	return out
}

// Hints signals that an inbox may have changed.
func (x *Inbox) Hints() <-chan struct{} { return x.hints }

// ForgetRuns forgets the inboxes of ended runs, unless another run works in the same folder.
func (x *Inbox) ForgetRuns(over func(run string) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	used := map[string]bool{}
	for run, dirs := range x.placed {
		if over(run) {
			delete(x.placed, run)
			continue
		}
		for _, dir := range dirs {
			used[dir] = true
		}
	}
	maps.DeleteFunc(x.places, func(dir string, _ string) bool { return !used[dir] })
}

// untrouble removes the notes on inboxes that are no longer read and on files that no longer exist.
func (x *Inbox) untrouble(boxes []box) {
	read := map[string]bool{}
	for _, b := range boxes {
		read[x.Shown(b.path)] = true
		read["of "+b.dir] = true
	}
	x.Notes.Drop(func(what string) bool {
		in, ok := strings.CutPrefix(what, "inbox ")
		if !ok || read[in] {
			return false
		}
		info, err := os.Lstat(x.Path(in))
		// otherwise it is a file in an inbox that is read
		return !read[path.Dir(in)] || err != nil || info.IsDir()
	})
}
