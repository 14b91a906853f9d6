package watcher

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	// passCost is the minimum time per folder between two passes over all folders.
	passCost = 2 * time.Microsecond
)

// keep looks at the folders from time to time and when the reader asks.
func (w *Watcher) keep() {
	defer w.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.kick:
		case <-timer.C:
		}
		retry := w.reopen()
		due, wait := w.dueChecks()
		for _, f := range due {
			select {
			case <-w.stop:
				return
			default:
				w.check(f)
			}
		}
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
		if err := w.source.Close(); err != nil {
			_ = err // It sends nothing any more anyway.
		}
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
	for f := range w.urgent {
		due = append(due, f)
	}
	clear(w.urgent)
	return due, w.nextLook.Sub(now)
}

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

type looked struct {
	st     atomicfile.Stat
	silent string
	err    error
}

// lookAt looks at a folder. ok is false if the file system does not answer in time, for example
// because its server is gone. Only this folder is given up until it answers; no lock that other
// folders need is held meanwhile.
func (w *Watcher) lookAt(f *folder) (l looked, ok bool) {
	found := make(chan looked, 1)
	w.mu.Lock()
	if f.hung || f.gone || w.closed {
		w.mu.Unlock()
		return looked{}, false
	}
	w.done.Go(func() {
		var l looked
		l.st, l.err = folderAt(f.path)
		if l.err == nil {
			l.silent = silent(f.path)
		}
		found <- l
		w.mu.Lock()
		defer w.mu.Unlock()
		if f.hung {
			f.hung = false
			w.urgent[f] = true
			poke(w.kick)
		}
	})
	w.mu.Unlock()
	timer := time.NewTimer(lookWait)
	defer timer.Stop()
	select {
	case l = <-found:
		return l, true
	case <-timer.C:
	}
	w.set(f, func() {
		f.hung, f.armed, f.reason = true, identity{}, "the file system does not answer"
		if len(found) > 0 { // it has answered by now
			f.hung, w.urgent[f] = false, true
			poke(w.kick)
		}
	})
	return looked{}, false
}

// check compares a folder with what is watched, makes the watch again if they differ, and manages
// its cookie.
func (w *Watcher) check(f *folder) {
	l, ok := w.lookAt(f)
	if !ok {
		return
	}
	w.arming.Lock()
	defer w.arming.Unlock()
	now := w.opt.Now()
	w.mu.Lock()
	if f.gone || w.closed {
		w.mu.Unlock()
		return
	}
	f.nextCheck = boundary(now, w.opt.Check)
	noEvents := w.noEvents
	if noEvents == "" && !f.held && w.watched < MaxWatched {
		f.held = true
		w.watched++
	}
	if noEvents == "" && !f.held {
		noEvents = fmt.Sprintf("more than %d folders: looked at every %s", MaxWatched, w.opt.PollRescan)
	}
	w.mu.Unlock()

	if noEvents == "" {
		noEvents = l.silent
	}
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
		w.watchParent(f)
		w.keepWatch(f, identityOf(l.st), now)
	}
	w.mu.Lock()
	w.nextLook = earlier(w.nextLook, f.dueAt())
	w.mu.Unlock()
	poke(w.wake)
}

// set changes f under the lock and hints if the change matters to a scan.
func (w *Watcher) set(f *folder, change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
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

// watchParent watches the parent folder, the only one whose events tell that a folder was created.
// If that fails, the next look finds out.
func (w *Watcher) watchParent(f *folder) {
	if w.source == nil {
		return
	}
	parent := filepath.Dir(f.path)
	info, err := os.Stat(parent)
	if err != nil {
		return
	}
	id := identityOf(atomicfile.StatOf(info))
	w.mu.Lock()
	same := f.armedParent == id
	own := w.paths[parent] != nil
	w.mu.Unlock()
	// A parent that is itself added has its own checks.
	if same || own || !w.arm(parent) {
		return
	}
	w.mu.Lock()
	f.armedParent = id
	w.mu.Unlock()
}

// arm makes the watch of path again. fsnotify knows only the path, and the old watch may be of an
// earlier folder there.
func (w *Watcher) arm(path string) bool {
	if err := w.source.Remove(path); err != nil {
		// There was none, or it went with its folder.
		_ = err
	}
	return w.source.Add(path) == nil
}

// keepWatch maintains the watch of an existing folder, and sends and awaits cookies.
func (w *Watcher) keepWatch(f *folder, id identity, now time.Time) {
	w.mu.Lock()
	armed, seen, out := f.armed, f.cookieSeen, f.cookie != ""
	lateBy, idle := now.Sub(f.cookieEnd), !now.Before(f.nextCookie)
	w.mu.Unlock()
	switch {
	case armed != id:
		w.set(f, func() { f.cookieFails = 0 })
		w.rearm(f, id)
	case seen:
		w.endCookie(f)
		w.set(f, func() {
			f.cookieFails, f.polling, f.reason = 0, false, ""
			f.nextCookie = now.Add(w.opt.Cookie)
		})
	case out && lateBy >= 0:
		w.endCookie(f)
		w.set(f, func() {
			f.cookieFails++
			f.reason = "a watch sent no event and was made again"
			if f.cookieFails >= maxCookieFails {
				f.polling = true
				f.reason = fmt.Sprintf("no events from the file system: looked at every %s", w.opt.PollRescan)
				// Retried later: it may have been the load.
				f.nextCookie = now.Add(w.opt.Cookie)
			}
		})
		if f.cookieFails < maxCookieFails {
			w.rearm(f, id)
		}
	case !out && idle:
		if f.polling {
			w.rearm(f, id)
			return
		}
		w.sendCookie(f)
	}
}

// rearm makes the watch of f, which has identity id, and tests it. A new watch is tested a little
// later, because most folders of a launch are gone by then.
func (w *Watcher) rearm(f *folder, id identity) {
	w.endCookie(f)
	first := !f.known
	if err := w.source.Remove(f.path); err != nil {
		_ = err // As in arm.
	}
	err := w.source.Add(f.path)
	if err == nil {
		// If it was swapped meanwhile, the next check finds the difference.
		if after, e := folderAt(f.path); e != nil || identityOf(after) != id {
			id = identity{}
		}
	}
	w.set(f, func() {
		if err != nil {
			f.armed, f.polling = id, true
			f.reason = fmt.Sprintf("cannot be watched: %v: looked at every %s", err, w.opt.PollRescan)
			f.nextCookie = w.opt.Now().Add(w.opt.Retry)
			return
		}
		f.armed = id
		if !f.polling && f.cookieFails == 0 {
			f.reason = ""
		}
	})
	if err != nil {
		return
	}
	// Changes between the folder's creation and its watch sent no event.
	w.hint(f.name)
	if first {
		w.set(f, func() { f.known, f.nextCookie = true, w.opt.Now().Add(cookieRest) })
		return
	}
	w.sendCookie(f)
}

// sendCookie creates a file whose event must arrive.
func (w *Watcher) sendCookie(f *folder) {
	name := cookiePrefix + strings.ToLower(rand.Text())
	now := w.opt.Now()
	w.mu.Lock()
	f.cookie, f.cookieSeen, f.cookieEnd = name, false, now.Add(w.opt.CookieWait)
	f.nextCookie = now.Add(w.opt.Cookie)
	w.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, cookiePerm)
	if err == nil {
		err = file.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.untested = ""
	if err != nil {
		f.cookie = ""
		f.untested = fmt.Sprintf("the watch could not be tested: %v", err)
	}
}

func (w *Watcher) endCookie(f *folder) {
	w.mu.Lock()
	name := f.cookie
	f.cookie, f.cookieSeen = "", false
	w.mu.Unlock()
	if name == "" {
		return
	}
	if err := os.Remove(filepath.Join(f.path, name)); err != nil {
		// Gone with its folder, or its permissions are; a later scan sweeps it.
		_ = err
	}
}

// release ends the watch of path if it is no longer needed. The caller holds arming.
func (w *Watcher) release(path string) {
	if w.source == nil {
		return
	}
	w.mu.Lock()
	needed := w.paths[path] != nil || len(w.refDirs[path]) > 0 || w.hasFile(path)
	for _, f := range w.folders {
		needed = needed || filepath.Dir(f.path) == path
	}
	w.mu.Unlock()
	if needed {
		return
	}
	if err := w.source.Remove(path); err != nil {
		_ = err // As in arm.
	}
}
