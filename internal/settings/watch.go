package settings

import (
	"os"
	"sync"
	"time"

	"sluice/internal/atomicfile"
)

// Settle is how long the files must have stayed as they are before they are read again: an editor writes a file bit by
// bit, and half a file may say less than the whole.
const Settle = time.Second

// Files are the files of settings that are followed: the person's and the project's.
type Files struct {
	Paths [2]string // "" = none

	mu    sync.Mutex
	read  Stamps    // when they were read last
	seen  Stamps    // as they are since
	since time.Time // when that was seen first
}

// Stamps are what a change of the files cannot leave as it is.
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

// WereRead notes that the files were read as they were then; at is what Now returned before. What was written meanwhile is
// a change.
func (f *Files) WereRead(at Stamps) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = at
}

// Changed reports whether the files have changed and are whole by now; soon: they have changed, and may not be whole.
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
