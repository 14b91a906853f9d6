package settings

import (
	"os"
	"sync"
	"time"

	"sluice/internal/atomicfile"
)

// Settle is how long the files must have been unchanged before they are read again: editors write a
// file in parts, and half a file may say less than the whole.
const Settle = time.Second

// Files are the watched settings files: the person's and the project's.
type Files struct {
	Paths [2]string // "" = none

	mu    sync.Mutex
	read  Stamps    // at the last read
	seen  Stamps    // at the last look
	since time.Time // when seen changed
}

// Stamps are file attributes that change with every edit.
type Stamps [2]atomicfile.Stat

// Now returns the files' stamps.
func (f *Files) Now() (out Stamps) {
	for i, p := range f.Paths {
		if info, err := os.Lstat(p); err == nil {
			out[i] = atomicfile.StatOf(info)
		}
	}
	return out
}

// WereRead records that the files were read; at is what Now returned before, so an edit in between
// still counts as a change.
func (f *Files) WereRead(at Stamps) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = at
}

// Changed reports whether the files have changed and are complete. soon means that they have
// changed but may not be complete.
func (f *Files) Changed(now time.Time) (changed, soon bool) {
	is := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if is != f.read && is != f.seen {
		f.seen, f.since = is, now
	}
	switch {
	case is == f.read:
		return false, false
	case now.Sub(f.since) < Settle:
		return false, true
	}
	return true, false
}
