package watcher

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// idleWait is how long a goroutine sleeps when nothing is scheduled.
	idleWait = time.Hour
	// drainBatch is how many events are taken before the times are checked.
	drainBatch = 4096
)

// read takes the system's events and sends hints. It must wait for nothing but its channels:
// fsnotify sends events and errors from one goroutine, so that no event follows an overflow until
// that error is read.
func (w *Watcher) read() {
	var events chan fsnotify.Event
	var errs chan error
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		name, wait := w.next()
		timer.Reset(wait)
		// A nil channel is never ready: without a hint, nothing is sent.
		var out chan string
		if name != "" {
			out = w.hints
		}
		select {
		case <-w.stop:
			go unread(errs)
			return
		case out <- name:
			w.given()
		case source := <-w.fresh:
			events, errs = source.Events, source.Errors
		case ev, ok := <-events:
			if !ok {
				events = nil
				w.lost("the system's events ended")
				continue
			}
			w.take(ev)
			w.drain(events)
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			w.doubt()
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// unread drops the errors of a source until it is closed: fsnotify sends some under the lock that the
// keeper, and Close, wait for.
func unread(errs <-chan error) {
	if errs == nil {
		return
	}
	for range errs {
	}
}

// drain takes the waiting events without checking the times in between, which in a burst would
// overflow the kernel's queue.
func (w *Watcher) drain(events <-chan fsnotify.Event) {
	for range drainBatch {
		select {
		case ev, ok := <-events:
			if !ok {
				return
			}
			w.take(ev)
		default:
			return
		}
	}
}

// next queues the due hints and returns the first one, and the wait for the next.
func (w *Watcher) next() (name string, wait time.Duration) {
	now := w.opt.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.nextHint) {
		w.nextHint = now.Add(idleWait)
		for _, f := range w.folders {
			w.nextHint = earlier(w.nextHint, w.hintByTime(f, now))
		}
		w.nextHint = later(w.nextHint, now.Add(w.passEvery()))
	}
	if len(w.queue) > 0 {
		name = w.queue[0]
	}
	return name, w.nextHint.Sub(now)
}

// hintByTime hints at a folder whose time has come, and returns its next time.
func (w *Watcher) hintByTime(f *folder, now time.Time) time.Time {
	if !now.Before(f.nextRescan) {
		w.hintLocked(f.name)
		f.nextRescan = boundary(now, w.rescanOf(f))
	}
	if !f.settleAt.IsZero() && !now.Before(f.settleAt) {
		w.hintLocked(f.name)
		f.settleAt = time.Time{}
	}
	if f.settleAt.IsZero() {
		return f.nextRescan
	}
	return earlier(f.nextRescan, f.settleAt)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// boundary returns the next multiple of an interval, the same for all folders, so that an idle
// process wakes once for all. It is relative to now on the monotonic clock, so setting the clock
// back delays nothing.
func boundary(now time.Time, every time.Duration) time.Time {
	return now.Add(every - now.Sub(now.Truncate(every)))
}

func (w *Watcher) rescanOf(f *folder) time.Duration {
	if f.polling {
		return min(w.opt.PollRescan, w.opt.Rescan)
	}
	return w.opt.Rescan
}

// given removes the first hint from the queue; only the reader does this.
func (w *Watcher) given() {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.queued, w.queue[0])
	w.queue = w.queue[1:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
}

// doubt handles errors, above all an overflow: the dropped events may concern any folder, even its
// removal.
func (w *Watcher) doubt() {
	defer poke(w.kick)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.folders {
		w.hintLocked(f.name)
		w.urgent[f], f.nextCookie = true, time.Time{}
	}
	w.hintLocked(w.filesIn("")...)
	for _, watches := range w.refDirs {
		for _, r := range watches {
			w.hintLocked(r.key)
		}
	}
}

// lost records why no events come any more: all folders are polled until the keeper has found
// another source.
func (w *Watcher) lost(why string) {
	w.mu.Lock()
	w.noEvents = why
	for _, f := range w.folders {
		w.urgent[f] = true
		w.hintLocked(f.name)
	}
	w.hintLocked(w.filesIn("")...)
	w.mu.Unlock()
	poke(w.kick)
}

// parentGone records that a folder was removed or renamed, and its watch with it. It reports
// whether that concerns a folder of ours. The caller holds mu.
func (w *Watcher) parentGone(path string) bool {
	found := false
	if w.below[path] == 0 { // every file that is moved away gets here
		return false
	}
	for _, f := range w.folders {
		if filepath.Dir(f.path) == path {
			f.armedParent, f.armed = identity{}, identity{}
			w.urgent[f] = true
			w.hintLocked(f.name)
			found = true
		}
	}
	return found
}

// take turns an event into a hint. An event names a file in a watched folder, or the folder itself;
// the parent's events name the folder too.
func (w *Watcher) take(ev fsnotify.Event) {
	if ev.Name == "" {
		return
	}
	dir, base := filepath.Dir(ev.Name), filepath.Base(ev.Name)
	kick := false
	w.mu.Lock()
	if f := w.paths[ev.Name]; f != nil {
		w.urgent[f], kick = true, true
		if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			// Its inode number proves nothing: a new folder may have reused it.
			f.armed = identity{}
		}
		w.hintLocked(f.name)
	}
	if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
		kick = w.parentGone(ev.Name) || kick
		w.hintLocked(w.filesIn(ev.Name)...) // their watch goes with their folder
	}
	if f := w.paths[dir]; f != nil {
		switch {
		case !strings.HasPrefix(base, "."):
			w.hintLocked(f.name)
			// A received event tests the watch as well as a cookie does.
			f.nextCookie = w.opt.Now().Add(w.opt.Cookie)
		case base == f.cookie:
			f.cookieSeen, w.urgent[f], kick = true, true, true
		}
	}
	for _, key := range []string{ev.Name, filepath.Join(dir, AnyFile)} {
		if w.files[key] > 0 {
			w.hintLocked(key)
		}
	}
	if !isGitNoise(base) {
		for _, r := range w.refDirs[dir] {
			w.hintLocked(r.key)
		}
	}
	w.mu.Unlock()
	if kick {
		poke(w.kick)
	}
}
