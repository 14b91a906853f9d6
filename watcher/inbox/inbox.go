// Package inbox reads what is put into inboxes, and takes it away once it was taken in: .workflow/signals and the folders of
// runs below it, those below worktrees, and the inbox that a held launch has for itself.
//
// Read first inbox.go (what is watched, and which folder a hint is about), then boxes.go (which folders a scan reads),
// scan.go (what a file in one of them says), words.go (the end of a step waits for its word), private.go (the own inbox of
// a held launch) and move.go (where a file goes).
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
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/watcher"
)

// Options are what an Inbox works with. All are needed.
type Options struct {
	Layout      layout.Layout
	Notes       *health.Notes
	Watcher     *watcher.Watcher
	Judge       Judge
	Levels      Levels
	Settle      func() time.Duration // how long a file that may still grow has to be as it is
	Corrections int                  // how often an agent is asked again at most
	Logf        func(string, ...any)
	Now         func() time.Time
}

// Judge says what an answer is over and whether it is signed.
type Judge interface {
	// DigestNow is the digest of what a round was opened over, as it is now.
	DigestNow(ctx context.Context, q job.Reviewed) (string, error)
	// Proven checks a signed answer and returns the words that were signed.
	Proven(proof string) (p engine.Proven, words string)
}

// Levels says who may be believed.
type Levels interface {
	// Level is what stood between the agents of a run and its gates.
	Level(run string) (level, why string)
	// SetLive names the runs that live. It is called before a whole scan reads its first folder.
	SetLive(runs []string)
}

// Inbox is the inboxes of one repo.
type Inbox struct {
	layout.Layout
	*health.Notes
	opt   Options
	inbox string // .workflow/signals
	hints chan struct{}

	one      sync.Mutex      // held by a scan; guards the two that follow
	noStrays atomicfile.Stat // of the inbox when it had no run's folder but those of liveThen live runs
	liveThen int

	mu      sync.Mutex
	watched map[string]bool       // folders given to the watcher
	hinted  map[string]bool       // watched folders that may have changed
	places  map[string]string     // inboxes below worktrees that are plain folders -> the key of their checkout
	placed  map[string][]string   // run -> its inboxes among places
	private map[string]privateBox // the inboxes of held launches
	dropped map[string]int        // launch -> files of its inbox that were counted and not kept
}

// New makes the inbox of a repo, where it is missing, and begins to watch it. End the watch with Unwatch.
func New(o Options) (*Inbox, error) {
	x := &Inbox{Layout: o.Layout, Notes: o.Notes, opt: o, inbox: o.Layout.Signals(), hints: make(chan struct{}, 1), watched: map[string]bool{},
		hinted: map[string]bool{}, places: map[string]string{}, placed: map[string][]string{}, private: map[string]privateBox{}, dropped: map[string]int{}}
	if err := x.MakeBelow(".workflow/signals", 0o755); err != nil {
		o.Logf("the inbox could not be made: %v", err)
	}
	return x, x.watch(x.inbox)
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

// Degraded says which folders are not watched as they should be.
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

// Hint takes a name that the shared watcher's Hints gave; one of another repo changes nothing.
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

// lookAt has a folder looked at, as if it had changed.
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

// Hinted gives the folders that may have changed: see daemon.World.
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

// Hints tells that an inbox may have changed.
func (x *Inbox) Hints() <-chan struct{} { return x.hints }

// ForgetRuns forgets the inboxes of runs that are over, where no other run works in the same folder.
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
	for dir := range x.places {
		if !used[dir] {
			delete(x.places, dir)
		}
	}
}

// untrouble ends the notes on inboxes that are read no more, as their runs are over, and on files that are not there.
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
		info, err := os.Lstat(filepath.Join(x.Root, filepath.FromSlash(in)))
		return !read[path.Dir(in)] || err != nil || info.IsDir() // else it is a file in one that is read
	})
}
