// Package watcher tells what lies in folders, and soon.
//
// The truth is the content of a folder, which Scan reads; events of the file system only say when to look
// earlier. They are not to be relied on: there are none of an overmounted folder, of a folder removed and
// made again (the watch goes with the old one), of writes through a memory map or another name of a file,
// or of what others do on a network file system; and beyond 16,384 waiting ones the kernel drops all. So a
// Watcher says of each folder "may have changed" (Hints) on every event, on every error, and every few
// seconds anyway; makes a lost watch again; tests each watch with a cookie, a dotfile whose event must
// come; and where there are no events, looks more often and says so (Health). A file system that does not answer
// within a second holds up its own folder alone.
//
// All folders share one inotify instance: a user may have 128 of them. Where there is none to be had, or no watch, folders
// are polled, and it is tried again every ten seconds. FAILURES.md beside this file lists what can go wrong, each with
// its tests.
package watcher

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"sluice/internal/atomicfile"
)

// Defaults of Options.
const (
	DefaultRescan     = 5 * time.Second
	DefaultPollRescan = 2 * time.Second
	DefaultCheck      = 5 * time.Second
	DefaultSettle     = 2 * time.Second
	DefaultCookie     = 60 * time.Second
	DefaultCookieWait = 2 * time.Second
	DefaultRetry      = 10 * time.Second
	DefaultMaxBytes   = 64 << 10
)

// Bounds of one Watcher. Folders beyond MaxWatched are polled until others are removed: each watch costs the kernel about
// 1 KiB, and the user has so many for all programs together.
const (
	MaxFolders = 65_536
	MaxWatched = 16_384
)

// Errors of Add and Scan. A folder that cannot be looked at is never taken for an empty one.
var (
	ErrMissing    = errors.New("folder is missing")
	ErrNotFolder  = errors.New("not a folder")
	ErrNotAdded   = errors.New("folder is not watched")
	ErrTooMany    = errors.New("too many folders")
	ErrUnreadable = errors.New("folder cannot be read")
	ErrClosed     = errors.New("watcher is closed")
)

// Modes of a folder, as Health tells them.
const (
	ModeEvents  = "events"
	ModePolling = "polling"
)

// Options set the pace; zero values become the defaults.
type Options struct {
	Rescan     time.Duration    // between hints where nothing happens; long where whoever scans does so anyway
	PollRescan time.Duration    // the same where the file system sends no events
	Check      time.Duration    // between looks whether a watch is still on its folder
	Settle     time.Duration    // a hint comes when a file has not changed for so long
	Cookie     time.Duration    // between tests of a watch that is idle
	CookieWait time.Duration    // how long a cookie's event may take
	Retry      time.Duration    // between tries where the system refuses to send events, as beyond a limit
	MaxBytes   int64            // of a file that Scan reads
	Now        func() time.Time // nil = time.Now
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.Rescan, DefaultRescan)
	set(&o.PollRescan, DefaultPollRescan)
	set(&o.Check, min(DefaultCheck, o.Rescan))
	set(&o.Settle, DefaultSettle)
	set(&o.Cookie, DefaultCookie)
	set(&o.CookieWait, DefaultCookieWait)
	set(&o.Retry, DefaultRetry)
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Watcher watches folders. It is safe for concurrent use. Two goroutines are its own until Close: one
// takes events, and touches no file so that it never falls behind; one keeps the watches, and has each look at a
// folder done by a goroutine for it, which may hang with the folder's file system.
type Watcher struct {
	opt  Options
	open func() (*fsnotify.Watcher, error)

	hints chan string
	wake  chan struct{} // the reader's: there is something to hint or a new time to wait for
	kick  chan struct{} // the keeper's: a folder is to be looked at now
	fresh chan *fsnotify.Watcher
	stop  chan struct{}
	done  sync.WaitGroup

	// arming is held over the use of source and before mu, never after: source sends to the reader while it
	// holds a lock of its own, and the reader takes mu.
	arming sync.Mutex
	source *fsnotify.Watcher // nil: there are no events at all

	mu       sync.Mutex
	closed   bool
	noEvents string                 // why source is nil, or sends nothing any more
	nextOpen time.Time              // when another source is tried
	folders  map[string]*folder     // by name as given to Add
	paths    map[string]*folder     // by watched path
	below    map[string]int         // how many folders lie in one, by its path
	watched  int                    // folders that have one of the MaxWatched places
	urgent   map[*folder]bool       // for the keeper: to be looked at now
	nextLook time.Time              // before it the keeper needs to look at no other folder
	nextHint time.Time              // before it the reader needs to hint at no folder by time
	refDirs  map[string][]*RefWatch // by watched folder of a git folder
	files    map[string]int         // how many follow a file, by its path
	queue    []string               // hints to give, each once
	queued   map[string]bool
}

// folder is one folder given to Add. But for name, path and memory, Watcher.mu guards it.
type folder struct {
	name string // as given
	path string // as watched: parent's real path + base
	gone bool   // Remove was called
	held bool   // it has one of the MaxWatched places
	hung bool   // a look at it is under way that got no answer in time

	armed       identity // what the watch is on; zero = there is none
	armedParent identity
	polling     bool
	reason      string // why it polls, or what is wrong with the folder
	scanErr     error  // of the last Scan

	nextRescan time.Time
	settleAt   time.Time // zero = none
	nextCheck  time.Time

	known       bool      // it was watched before
	cookie      string    // name of the cookie that is out; "" = none
	cookieSeen  bool      // its event came
	cookieEnd   time.Time // when it should have come
	cookieFails int
	nextCookie  time.Time
	untested    string // why no cookie could be written

	memory memory
}

// identity is what makes a folder at a path the one that was watched.
type identity struct{ dev, ino uint64 }

func identityOf(st atomicfile.Stat) identity { return identity{st.Dev, st.Ino} }

// New makes a Watcher. It does not fail where there is no inotify, or no more of it to be had: then all
// folders are polled, Health says why, and it is tried again from time to time.
func New(o Options) *Watcher { return newFrom(o, fsnotify.NewWatcher) }

func newFrom(o Options, open func() (*fsnotify.Watcher, error)) *Watcher {
	w := &Watcher{
		opt:     o.withDefaults(),
		open:    open,
		hints:   make(chan string),
		wake:    make(chan struct{}, 1),
		kick:    make(chan struct{}, 1),
		fresh:   make(chan *fsnotify.Watcher, 1),
		stop:    make(chan struct{}),
		folders: map[string]*folder{},
		below:   map[string]int{},
		paths:   map[string]*folder{},
		urgent:  map[*folder]bool{},
		refDirs: map[string][]*RefWatch{},
		files:   map[string]int{},
		queued:  map[string]bool{},
	}
	w.noEvents = "not asked for yet"
	w.reopen()
	w.done.Add(2)
	go w.read()
	go w.keep()
	return w
}

// Close ends the watch of all folders and waits for the goroutines. Hints are not sent any more; the
// channel stays open.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	w.done.Wait()
	w.arming.Lock()
	defer w.arming.Unlock()
	w.mu.Lock()
	folders := slices.Collect(maps.Values(w.folders))
	w.mu.Unlock()
	for _, f := range folders {
		w.endCookie(f)
	}
	if w.source == nil {
		return nil
	}
	return w.source.Close()
}

// Hints gives the names (as given to Add, or a RefWatch's or FileWatch's Key) of what may have changed: also when
// nothing did, and also once more after Remove. A name that waits to be taken is not put in twice.
func (w *Watcher) Hints() <-chan string { return w.hints }

// Add begins to watch dir, and hints at it at once. The folder need not be there yet. What is in folders
// below it is not seen: they are added themselves. Adding twice changes nothing.
func (w *Watcher) Add(dir string) error {
	path, err := watchPath(dir)
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	now := w.opt.Now()
	f := &folder{name: dir, path: path, nextRescan: now, nextCheck: now, memory: newMemory()}
	w.mu.Lock()
	switch {
	case w.closed:
		err = ErrClosed
	case w.folders[dir] != nil:
		w.mu.Unlock()
		return nil
	case w.paths[path] != nil:
		err = fmt.Errorf("it is the same as %s, which is watched already", w.paths[path].name)
	case len(w.folders) >= MaxFolders:
		err = fmt.Errorf("%w: at most %d", ErrTooMany, MaxFolders)
	}
	if err != nil {
		w.mu.Unlock()
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	w.folders[dir], w.paths[path] = f, f
	w.below[filepath.Dir(path)]++
	w.nextHint = earlier(w.nextHint, now)
	w.mu.Unlock()
	w.check(f)
	w.hint(dir)
	poke(w.kick)
	return nil
}

// Remove ends the watch of dir and forgets what was seen in it.
func (w *Watcher) Remove(dir string) {
	w.arming.Lock()
	defer w.arming.Unlock()
	w.mu.Lock()
	f := w.folders[dir]
	if f == nil {
		w.mu.Unlock()
		return
	}
	f.gone = true
	delete(w.folders, dir)
	delete(w.paths, f.path)
	if parent := filepath.Dir(f.path); w.below[parent] > 1 {
		w.below[parent]--
	} else {
		delete(w.below, parent)
	}
	delete(w.urgent, f)
	if f.held {
		w.watched--
	}
	w.mu.Unlock()
	w.endCookie(f)
	w.release(f.path)
	w.release(filepath.Dir(f.path))
}

// Health tells how dir is watched (ModeEvents or ModePolling) and what is wrong with that or with the
// folder; degraded is "" where all is well.
func (w *Watcher) Health(dir string) (mode, degraded string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.folders[dir]
	if f == nil {
		return ModePolling, ErrNotAdded.Error()
	}
	mode, degraded = ModeEvents, f.reason
	if f.polling {
		mode = ModePolling
	}
	switch {
	case f.scanErr != nil:
		degraded = f.scanErr.Error()
	case degraded == "" && f.untested != "":
		degraded = f.untested
	}
	return mode, degraded
}

// watchPath resolves links above dir, so that two names of one folder meet and events bear the name they
// are looked up by. A link at its end stays: it is refused when it is looked at.
func watchPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	parent, err := atomicfile.RealPath(filepath.Dir(abs))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return abs, nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

// hint queues name once.
func (w *Watcher) hint(name string) {
	w.mu.Lock()
	w.hintLocked(name)
	w.mu.Unlock()
	poke(w.wake)
}

func (w *Watcher) hintLocked(name string) {
	if !w.queued[name] {
		w.queued[name] = true
		w.queue = append(w.queue, name)
	}
}

// poke sets a flag that a goroutine waits for; one that is set already stays.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
