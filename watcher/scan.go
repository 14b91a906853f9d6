package watcher

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
)

// Limits of one Scan; the next one continues beyond them.
const (
	MaxScanFiles = 1000
	MaxScanBytes = 8 << 20
	listBatch    = 1024
	// maxListed is how many names one listing keeps for later scans. Otherwise a large folder would
	// be listed again for every thousand files.
	maxListed = 16 * MaxScanFiles
)

const (
	// maxRemembered is how many files of a folder are remembered between scans.
	maxRemembered = 100_000
	// staleCookie is the age at which a cookie is taken for a killed process's.
	staleCookie = 10 * time.Minute
	// maxSwept bounds how many such cookies one scan removes.
	maxSwept = 16
)

// Seen is a file as a scan found it.
type Seen struct {
	Dir  string // as given to Add
	Name string // as in the file system: any bytes but NUL and slash; quote it for display
	Data []byte // the whole content; nil with Err
	Stat atomicfile.Stat
	// Err is why there is no Data: atomicfile.ErrNotRegular, atomicfile.ErrTooLarge, or a system
	// error.
	Err error
	// FirstSeen is when a scan first found a file of this name that every scan since has found, and
	// that was not Taken in another state.
	FirstSeen time.Time
	// Since is when a scan first found it in its present state; a file settles some time after
	// this. State is the content, if readable, and Stat: a write through a memory map does not
	// change Stat.
	Since time.Time
	// Unchanged reports that it is as at the previous scan.
	Unchanged bool
}

// memory is what is kept of a folder between scans.
type memory struct {
	mu     sync.Mutex
	files  map[string]remembered
	after  string          // last name returned when a scan stopped at a limit; "" = from the start
	ahead  []string        // names after it that were already listed, sorted
	listed identity        // the folder they were listed in
	beyond bool            // there were more than could be kept
	empty  atomicfile.Stat // of the folder when it was empty and at rest; zero = not empty
	known  bool            // a scan has read the folder
	passes uint64          // counts how often the names began again
}

type remembered struct {
	stat      atomicfile.Stat
	sum       [sha256.Size]byte
	firstSeen time.Time
	since     time.Time
	pass      uint64
	taken     bool
}

// Scan reads the files in dir, an added folder, by name in ascending byte order. It skips dotfiles
// and folders, and returns everything else, readable or not. more means that a limit was reached;
// the next Scan continues after the last name and may miss newer files until the names begin again.
// Every pass returns every file until it is moved away.
//
// After ErrMissing, ErrNotFolder and ErrUnreadable, nothing is known of the folder's content.
func (w *Watcher) Scan(dir string) (seen []Seen, more bool, err error) {
	f := added(w, dir)
	if f == nil {
		return nil, false, fmt.Errorf("scan %s: %w", dir, ErrNotAdded)
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	w.mu.Lock()
	polling := f.polling
	w.mu.Unlock()
	names, more, err := f.memory.list(f.path, w.opt.Now(), !polling)
	now := w.opt.Now() // a file may have come while a slow file system listed its folder
	w.mu.Lock()
	f.scanErr = err
	w.mu.Unlock()
	if err != nil {
		return nil, false, fmt.Errorf("scan %s: %w", dir, err)
	}
	bytes, looked := 0, 0
	for _, name := range names {
		s, there := w.look(f, name, now)
		looked++
		if !there {
			continue
		}
		seen = append(seen, s)
		if bytes += len(s.Data); bytes >= MaxScanBytes && looked < len(names) {
			more = true
			break
		}
	}
	if looked > 0 {
		f.memory.given(looked)
	}
	if !more {
		f.memory.endPass()
	}
	w.settle(f, seen, now)
	return seen, more, nil
}

// added returns the folder that was added under this name, or nil.
func added(w *Watcher, dir string) *folder {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.folders[dir]
}

// look reads one file and compares it with its previous state.
func (w *Watcher) look(f *folder, name string, now time.Time) (s Seen, there bool) {
	data, st, err := atomicfile.OpenRegular(f.path, name, w.opt.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Seen{}, false
	}
	s = Seen{Dir: f.name, Name: name, Data: data, Stat: st, Err: err, FirstSeen: now, Since: now}
	sum := sha256.Sum256(data)
	old, known := f.memory.files[name]
	if known {
		s.Unchanged = old.stat.Same(st) && old.sum == sum
		if s.Unchanged {
			s.Since = old.since
		}
		if s.Unchanged || !old.taken {
			s.FirstSeen = old.firstSeen
		}
	}
	if known || len(f.memory.files) < maxRemembered {
		f.memory.files[name] = remembered{stat: st, sum: sum, firstSeen: s.FirstSeen, since: s.Since,
			pass: f.memory.passes, taken: s.Unchanged && old.taken}
	}
	return s, true
}

// Taken marks the file, as the last Scan of dir returned it, as done. Its name in another state is
// then another file, even if no scan found the name free: it may have been moved away and written
// again between two scans.
func (w *Watcher) Taken(dir, name string) {
	f := added(w, dir)
	if f == nil {
		return
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	if r, known := f.memory.files[name]; known {
		r.taken = true
		f.memory.files[name] = r
	}
}

// settle schedules a hint for when the first recently changed file has settled.
func (w *Watcher) settle(f *folder, seen []Seen, now time.Time) {
	var at time.Time
	for _, s := range seen {
		if t := s.Since.Add(w.opt.Settle); t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	w.mu.Lock()
	if !at.IsZero() && (f.settleAt.IsZero() || at.Before(f.settleAt)) {
		f.settleAt = at
		w.nextHint = earlier(w.nextHint, at)
	}
	w.mu.Unlock()
	poke(w.wake)
}

// AtRest is how old a folder's change must be for its time to show the next change: some file
// systems count in steps of two seconds.
const AtRest = 3 * time.Second

// still reports whether the folder was empty and is unchanged: any new name changes its time.
func (m *memory) still(st atomicfile.Stat) bool {
	return m.empty != (atomicfile.Stat{}) && m.empty.Untouched(st)
}

// missed reports whether a folder that is scanned may have something that no event reported. While a
// scan reads it, that is not known: the next check asks again.
func (m *memory) missed(st atomicfile.Stat) bool {
	if !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	return m.known && !m.still(st)
}

// list returns the next MaxScanFiles names, sorted, and whether there are more. With trust, it does
// not read a folder that is still empty.
func (m *memory) list(path string, now time.Time, trust bool) (names []string, more bool, err error) {
	st, err := folderAt(path)
	if err != nil {
		return nil, false, err
	}
	if trust && m.still(st) {
		return nil, false, nil
	}
	m.empty, m.known = atomicfile.Stat{}, true
	d, err := atomicfile.OpenDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("%w: %s", ErrMissing, path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if m.after == "" || len(m.ahead) == 0 || m.listed != identityOf(st) {
		err = m.read(d, path)
		m.listed = identityOf(st)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		m.ahead = nil
		return nil, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if len(m.ahead) == 0 && m.after == "" && now.Sub(st.ModTime) > AtRest {
		m.empty = st
	}
	names = m.ahead[:min(len(m.ahead), MaxScanFiles)]
	return names, m.beyond || len(names) < len(m.ahead), nil
}

// read lists the folder d at path: the first maxListed names after the last one returned. It never
// keeps more than twice as many.
func (m *memory) read(d *os.File, path string) error {
	var kept []string
	m.beyond = false
	cut := func() {
		if slices.Sort(kept); len(kept) > maxListed {
			kept, m.beyond = slices.Delete(kept, maxListed, len(kept)), true
		}
	}
	swept := 0
	for {
		entries, err := d.ReadDir(listBatch)
		for _, e := range entries {
			name := e.Name()
			if strings.HasPrefix(name, ".") {
				if strings.HasPrefix(name, cookiePrefix) && swept < maxSwept {
					swept++
					sweep(path, name)
				}
				continue
			}
			if e.IsDir() || name <= m.after {
				continue
			}
			if kept = append(kept, name); len(kept) == 2*maxListed {
				cut()
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(entries) < listBatch {
			break
		}
		if err != nil {
			return err
		}
	}
	cut()
	m.ahead = kept
	return nil
}

// given records that the first n of the names ahead were returned.
func (m *memory) given(n int) {
	m.after, m.ahead = m.ahead[n-1], m.ahead[n:]
	if len(m.ahead) == 0 {
		m.ahead = nil
	}
}

// endPass forgets the files not found in this pass, and begins again.
func (m *memory) endPass() {
	maps.DeleteFunc(m.files, func(_ string, r remembered) bool { return r.pass != m.passes })
	m.after, m.ahead = "", nil
	m.passes++
}

// sweep removes a killed process's cookie.
func sweep(dir, name string) {
	st, err := atomicfile.Lstat(dir, name)
	if err != nil || !st.Mode.IsRegular() || time.Since(st.ModTime) < staleCookie {
		return
	}
	_ = os.Remove(filepath.Join(dir, name)) // if it stays, no scan reads it
}
