package watcher

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
)

// watchParent watches the parent folder, the only one whose events tell that a folder was created.
// If that fails, the next look finds out.
func (w *Watcher) watchParent(f *folder) {
	if w.source == nil {
		return
	}
	parent := filepath.Dir(f.path)
	w.mu.Lock()
	own := w.paths[parent] != nil
	w.mu.Unlock()
	if own { // it has its own checks
		return
	}
	info, err := os.Stat(parent)
	if err != nil {
		return
	}
	id := identityOf(atomicfile.StatOf(info))
	w.mu.Lock()
	same := f.armedParent == id
	w.mu.Unlock()
	if same || w.arm(parent) != nil {
		return
	}
	w.mu.Lock()
	f.armedParent = id
	w.mu.Unlock()
}

// arm makes the watch of path again. It removes the old one first: fsnotify knows only the path,
// and that watch may be of an earlier folder there.
func (w *Watcher) arm(path string) error {
	_ = w.source.Remove(path) // there was none, or it went with its folder
	return w.source.Add(path)
}

// keepWatch maintains the watch of an existing folder. A watch that is on another folder is made
// again; else it is tested: a cookie is sent when the folder has been idle, and its event awaited.
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
	err := w.arm(f.path)
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

// endCookie removes the current cookie, if there is one.
func (w *Watcher) endCookie(f *folder) {
	w.mu.Lock()
	name := f.cookie
	f.cookie, f.cookieSeen = "", false
	w.mu.Unlock()
	if name == "" {
		return
	}
	_ = os.Remove(filepath.Join(f.path, name)) // if it stays, a later scan sweeps it
}

// release ends the watch of path if it is no longer needed. The caller holds arming.
func (w *Watcher) release(path string) {
	if w.source == nil {
		return
	}
	w.mu.Lock()
	needed := w.paths[path] != nil || w.below[path] > 0 || len(w.refDirs[path]) > 0 || len(w.filesIn(path)) > 0
	w.mu.Unlock()
	if needed {
		return
	}
	_ = w.source.Remove(path) // as in arm
}
