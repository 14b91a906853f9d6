// Package watcher reports the contents of folders, promptly.
//
// The truth is the content of a folder, which Scan reads; file system events only say when to look
// earlier. A Watcher hints that a folder may have changed (Hints) on every event, on every error,
// and every few seconds for what no event reported. FAILURES.md lists what can go wrong, each with its tests.
//
// # What the system does not report
//
// On Linux the events are inotify's. Unless marked, these limits are from inotify(7):
//
//   - No event reports a write through a memory map, nor what others do on a network file system.
//   - No event reports that a file system was mounted over a folder, nor what happens there then.
//   - A watch is on a folder, not on its path. It goes with the folder, and a new folder at the
//     path has none.
//   - An event names a file in the watched folder. A write through another name of the file, in
//     another folder, has none (TestWriteWithoutEvent).
//   - If more events wait than fs.inotify.max_queued_events (usually 16,384), the kernel drops the
//     rest, and reports only that it did.
//   - All programs of a user share fs.inotify.max_user_instances (usually 128) and
//     fs.inotify.max_user_watches.
//
// On macOS they are kqueue's, which needs an open descriptor for each file in a watched folder (see
// fsnotify): the limit of open files comes first there. Nobody has run this package on macOS.
//
// # What it does about it
//
// It compares each folder with its watch from time to time, and restores a lost watch. It tests
// each watch with a cookie, a dotfile whose event must arrive. All folders share one instance.
// Without an instance, a watch or events it polls the folder, says so (Health) and tries again,
// every ten seconds if the system refused. A file system that does not answer within a second only
// delays its own folder.
package watcher

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	DefaultCookie     = time.Hour // what a dead watch misses is found by the checks
	DefaultCookieWait = 2 * time.Second
	DefaultRetry      = 10 * time.Second
	DefaultMaxBytes   = 64 << 10
)

// Limits of one Watcher. Folders beyond MaxWatched are polled until others are removed: all of the
// user's programs share the system's limit, and each watch costs the kernel about 1 KiB
// (INOTIFY_WATCH_COST in Linux's fs/notify/inotify/inotify_user.c).
const (
	MaxFolders = 65_536
	MaxWatched = 16_384
)

// Errors of Add and Scan. A folder that cannot be read is never taken for empty.
var (
	ErrMissing    = errors.New("folder is missing")
	ErrNotFolder  = errors.New("not a folder")
	ErrNotAdded   = errors.New("folder is not watched")
	ErrTooMany    = errors.New("too many folders")
	ErrUnreadable = errors.New("folder cannot be read")
	ErrClosed     = errors.New("watcher is closed")
)

// Modes of a folder, as Health returns them.
const (
	ModeEvents  = "events"
	ModePolling = "polling"
)

// Options sets the intervals; zero values become the defaults.
type Options struct {
	// between hints when nothing happens; may be long: a check hints at what no event reported
	Rescan     time.Duration
	PollRescan time.Duration    // the same if the file system sends no events
	Check      time.Duration    // between checks that a watch is still on its folder, which is as it was scanned
	Settle     time.Duration    // a hint follows when a file has been unchanged for this long
	Cookie     time.Duration    // between tests of an idle watch
	CookieWait time.Duration    // how long a cookie's event may take
	Retry      time.Duration    // between retries when the system refuses events, as beyond a limit
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

// Watcher watches folders. It is safe for concurrent use.
//
// It has three goroutines until Close. The reader (read.go) takes events and touches no file, so it
// never falls behind. The keeper (keep.go) maintains the watches; its looks at the folders have
// a goroutine of their own (keep_look.go), which may hang with a folder's file system. The patrol
// (patrol.go) finds out at the lowest cost whether the keeper has anything to do.
type Watcher struct {
	opt  Options
	open func() (*fsnotify.Watcher, error)

	hints  chan string
	wake   chan struct{} // wakes the reader: a new hint or a new time
	kick   chan struct{} // wakes the keeper: look at a folder now
	fresh  chan *fsnotify.Watcher
	stop   chan struct{}
	patrol *patrol // nil: there is none
	done   sync.WaitGroup

	// arming is locked while source is used, always before mu: source sends to the reader while
	// holding its own lock, and the reader locks mu.
	arming sync.Mutex
	source *fsnotify.Watcher // nil: there are no events at all

	mu       sync.Mutex // guards what follows, and the folders
	closed   bool
	noEvents string                 // why source is nil or sends nothing
	nextOpen time.Time              // when to try another source
	folders  map[string]*folder     // by name as given to Add
	paths    map[string]*folder     // by watched path
	below    map[string]int         // number of folders in a parent, by its path
	watched  int                    // folders that use one of the MaxWatched watches
	urgent   map[*folder]bool       // the keeper looks at them now
	nextLook time.Time              // when the keeper next needs to look at others
	nextHint time.Time              // when the reader next needs to hint by time
	refDirs  map[string][]*RefWatch // by watched folder of a git folder
	files    map[string]int         // number of followers of a file, by its path
	queue    []string               // hints to send, each once
	queued   map[string]bool
}

// folder is a folder given to Add. Watcher.mu guards it, except name, path and memory.
type folder struct {
	name string // as given
	path string // as watched: parent's real path + base
	gone bool   // Remove was called
	held bool   // it uses one of the MaxWatched watches
	hung bool   // a look at it has not answered in time

	armed       identity // what the watch is on; zero = none
	armedParent identity
	polling     bool
	reason      string // why it polls, or what is wrong with the folder
	scanErr     error  // of the last Scan

	nextRescan time.Time
	settleAt   time.Time // zero = none
	nextCheck  time.Time

	known       bool      // it was watched before
	cookie      string    // name of the current cookie; "" = none
	cookieSeen  bool      // its event arrived
	cookieEnd   time.Time // when it is due
	cookieFails int       // consecutive cookies without an event
	nextCookie  time.Time
	untested    string // why no cookie could be written

	memory memory
}

// identity shows whether the folder at a path is still the watched one. It is no proof: a file
// system may give a new folder the inode number of a removed one.
type identity struct{ dev, ino uint64 }

func identityOf(st atomicfile.Stat) identity { return identity{st.Dev, st.Ino} }

// New returns a Watcher. It does not fail if inotify is missing or exhausted: then it polls all
// folders, Health reports why, and it retries from time to time.
func New(o Options) *Watcher { return newFrom(o, fsnotify.NewWatcher, newPatrol()) }

func newFrom(o Options, open func() (*fsnotify.Watcher, error), p *patrol) *Watcher {
	w := &Watcher{
		opt:     o.withDefaults(),
		open:    open,
		patrol:  p,
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
	w.done.Go(w.read)
	w.done.Go(w.keep)
	if w.patrol != nil {
		w.done.Go(func() { w.patrol.run(w) })
	}
	return w
}

// Close ends all watches and waits for the goroutines. No more hints are sent; the channel stays
// open.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	if w.patrol != nil {
		w.patrol.alarm.Close()
	}
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
	go unread(w.source.Errors) // it may be newer than what the reader knew
	return w.source.Close()
}

// Hints returns the names (as given to Add, or the Key of a RefWatch or FileWatch) of what may have
// changed. A hint may come without a change, and once more after Remove. A waiting name is not
// queued twice.
func (w *Watcher) Hints() <-chan string { return w.hints }

// Add watches dir and hints at it at once. The folder need not exist yet. Its subfolders are not
// included: add them too. Adding a folder again changes nothing.
func (w *Watcher) Add(dir string) error {
	path, err := watchPath(dir)
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	now := w.opt.Now()
	f := &folder{name: dir, path: path, nextRescan: now, nextCheck: now, memory: memory{files: map[string]remembered{}}}
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

// Health returns how dir is watched (ModeEvents or ModePolling) and what is wrong with that or with
// the folder; degraded is "" if all is well.
func (w *Watcher) Health(dir string) (mode, degraded string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.folders[dir]
	if f == nil {
		return ModePolling, ErrNotAdded.Error()
	}
	mode = ModeEvents
	if f.polling {
		mode = ModePolling
	}
	if f.scanErr != nil {
		return mode, f.scanErr.Error()
	}
	faults := slices.DeleteFunc([]string{f.reason, f.untested}, func(s string) bool { return s == "" })
	return mode, strings.Join(faults, "; ")
}

// watchPath resolves links above dir, so that two names of a folder become one and match its
// events' names. A link at the end stays; looking at it refuses it.
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

// hint queues name, unless it waits already.
func (w *Watcher) hint(name string) {
	w.mu.Lock()
	w.hintLocked(name)
	w.mu.Unlock()
	poke(w.wake)
}

func (w *Watcher) hintLocked(names ...string) {
	for _, name := range names {
		if !w.queued[name] {
			w.queued[name] = true
			w.queue = append(w.queue, name)
		}
	}
}

// poke sets a flag that a goroutine waits for, unless it is already set.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
