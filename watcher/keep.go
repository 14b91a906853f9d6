package watcher

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

const (
	// cookiePrefix begins the name of the file whose event tests a watch. Scans ignore dotfiles.
	cookiePrefix = ".sluice-cookie-"
	// maxCookieFails is how many consecutive cookies may be lost before a folder is polled. The
	// watch is made again after each.
	maxCookieFails = 2
	cookiePerm     = 0o600
	// cookieRest is how old a new watch is when it is tested.
	cookieRest = time.Second
	// lookWait is how long the keeper waits for one folder's file system.
	lookWait = time.Second
	// clockJump is a difference between two clocks that no adjustment makes.
	clockJump = 2 * time.Second
	// passCost is the minimum time per folder between two passes over all folders.
	passCost = 2 * time.Microsecond
)

// keep looks at the folders from time to time and when the reader asks.
func (w *Watcher) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for before := w.opt.Now(); ; {
		select {
		case <-w.stop:
			return
		case <-w.kick:
		case <-timer.C:
		}
		now := w.opt.Now()
		if jumped(before, now) {
			w.doubt()
		}
		before = now
		retry := w.reopen()
		due, wait := w.dueChecks()
		w.check(due...)
		if len(due) > 0 {
			wait = 0 // checks set new times
		}
		timer.Reset(min(wait, retry))
	}
}

// reopen asks the system for events again if they were refused or ended. It returns how long to
// wait before the next try.
func (w *Watcher) reopen() (wait time.Duration) {
	now := w.opt.Now()
	w.mu.Lock()
	refused, at := w.noEvents != "", w.nextOpen
	w.mu.Unlock()
	switch {
	case !refused:
		return idleWait
	case now.Before(at):
		return at.Sub(now)
	}
	w.arming.Lock()
	defer w.arming.Unlock()
	if w.source != nil {
		_ = w.source.Close() // it sends nothing any more anyway
		w.source = nil
	}
	source, err := w.open()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.noEvents = fmt.Sprintf("no events from the system: %v: folders are looked at every %s", err, w.opt.PollRescan)
		w.nextOpen = now.Add(w.opt.Retry)
		return w.opt.Retry
	}
	w.source, w.noEvents = source, ""
	for _, f := range w.folders {
		f.armed, f.armedParent = identity{}, identity{}
		w.urgent[f] = true
	}
	w.hintLocked(w.filesIn("")...) // whoever follows one arms it again
	select {
	case <-w.fresh: // closed above before the reader took it
	default:
	}
	w.fresh <- source // the only sender: there is room
	return idleWait
}

// dueChecks returns the folders to look at now, and the wait for the next one.
func (w *Watcher) dueChecks() (due []*folder, wait time.Duration) {
	now := w.opt.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.nextLook) {
		w.nextLook = now.Add(idleWait)
		for _, f := range w.folders {
			if at := f.dueAt(); now.Before(at) {
				w.nextLook = earlier(w.nextLook, at)
			} else {
				w.urgent[f] = true
			}
		}
		w.nextLook = later(w.nextLook, now.Add(w.passEvery()))
	}
	due = slices.Collect(maps.Keys(w.urgent))
	clear(w.urgent)
	return due, w.nextLook.Sub(now)
}

// dueAt returns when the keeper must look at f next.
func (f *folder) dueAt() time.Time {
	if f.cookie != "" {
		return earlier(f.nextCheck, f.cookieEnd)
	}
	return f.nextCheck
}

// passEvery returns the minimum time between two passes over all folders. Folders due in between
// share a pass, so that the work does not grow with the square of their number.
func (w *Watcher) passEvery() time.Duration {
	return max(time.Millisecond, time.Duration(len(w.folders))*passCost)
}

// jumped reports whether the wall clock moved by itself: it was set, or the machine slept. Whoever
// waits for a moment on that clock must look again.
func jumped(before, now time.Time) bool {
	return (now.Round(0).Sub(before.Round(0)) - now.Sub(before)).Abs() > clockJump
}

// check compares folders with what is watched, makes a watch again where they differ, and manages
// their cookies. It returns early when the watcher is closed.
func (w *Watcher) check(folders ...*folder) {
	for i, l := range lookAt(w, folders) {
		select {
		case <-w.stop:
			return
		default:
		}
		if l.answered {
			w.checkOne(folders[i], l)
		}
	}
}

func (w *Watcher) checkOne(f *folder, l looked) {
	w.arming.Lock()
	defer w.arming.Unlock()
	now := w.opt.Now()
	w.mu.Lock()
	if f.gone || w.closed {
		w.mu.Unlock()
		return
	}
	f.nextCheck = boundary(now, w.opt.Check)
	noEvents, nextHint := w.noEvents, w.nextHint
	// Where the folder is the watched one, its parent was not exchanged either.
	exchanged := f.armedParent == (identity{}) || f.armed != identityOf(l.st)
	switch {
	case noEvents != "" || f.held:
	case w.watched < MaxWatched:
		f.held = true
		w.watched++
	default:
		noEvents = fmt.Sprintf("more than %d folders: looked at every %s", MaxWatched, w.opt.PollRescan)
	}
	w.mu.Unlock()

	noEvents = cmp.Or(noEvents, l.silent)
	switch {
	case l.err != nil:
		w.watchParent(f)
		w.set(f, func() { f.armed, f.reason = identity{}, l.err.Error() })
		w.endCookie(f)
	case noEvents != "":
		// The watch is made again once there are events.
		w.set(f, func() { f.armed, f.polling, f.reason = identity{}, true, noEvents })
		w.endCookie(f)
	default:
		if exchanged {
			w.watchParent(f)
		}
		w.keepWatch(f, identityOf(l.st), now)
		if f.memory.missed(l.st) {
			w.hint(f.name)
		}
	}
	w.mu.Lock()
	if w.patrol.minds(f) { // it finds changes; the keeper only tests the watch
		f.nextCheck = boundary(later(now, f.nextCookie), w.opt.Check)
	}
	w.nextLook = earlier(w.nextLook, f.dueAt())
	told := len(w.queue) > 0 || !w.nextHint.Equal(nextHint)
	w.mu.Unlock()
	if told { // a folder that is as it was wakes nobody
		poke(w.wake)
	}
}

// set changes f under the lock and hints if the change matters to a scan.
func (w *Watcher) set(f *folder, change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(f, change)
}

func (w *Watcher) setLocked(f *folder, change func()) {
	before := [3]any{f.armed, f.reason, f.polling}
	change()
	if before != [3]any{f.armed, f.reason, f.polling} {
		w.hintLocked(f.name)
		now := w.opt.Now()
		f.nextRescan, f.nextCheck = boundary(now, w.rescanOf(f)), boundary(now, w.opt.Check)
		w.nextHint = earlier(w.nextHint, f.nextRescan)
	}
}

// folderAt returns the Stat of path, which must be a folder, not a link to one: a link could later
// point elsewhere.
func folderAt(path string) (atomicfile.Stat, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return atomicfile.Stat{}, fmt.Errorf("%w: %s", ErrMissing, path)
	case err != nil:
		return atomicfile.Stat{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return atomicfile.Stat{}, fault.New("put a folder there", "%w: %s is a link", ErrNotFolder, path)
	case !info.IsDir():
		return atomicfile.Stat{}, fmt.Errorf("%w: %s", ErrNotFolder, path)
	}
	return atomicfile.StatOf(info), nil
}
