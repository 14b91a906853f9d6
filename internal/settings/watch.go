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

// SettleMost is how long files that keep changing are waited for, at most. An agent that no sandbox holds
// could otherwise change the project's file again and again, and the person's would never be read.
const SettleMost = 10 * time.Second

// Files are the watched settings files: the person's and the project's.
type Files struct {
	Paths [2]string // "" = none

	mu    sync.Mutex
	read  Stamps    // at the last read
	seen  Stamps    // at the last look; read until it finds a change
	first time.Time // when a look first found a change since the last read
	since time.Time // when seen changed
}

// Stamps are file attributes that change with every edit.
type Stamps [2]atomicfile.Stat

// Pass is one look at the files of many repos, which share the person's: each file is looked at once.
type Pass map[string]atomicfile.Stat

func (p Pass) stat(file string) atomicfile.Stat {
	st, known := p[file]
	if !known && file != "" {
		if info, err := os.Lstat(file); err == nil {
			st = atomicfile.StatOf(info)
		}
		p[file] = st
	}
	return st
}

// Now returns the files' stamps.
func (f *Files) Now() Stamps { return f.at(Pass{}) }

func (f *Files) at(p Pass) Stamps { return Stamps{p.stat(f.Paths[0]), p.stat(f.Paths[1])} }

// WereRead records that the files were read; at is what Now returned before, so an edit in between
// still counts as a change.
func (f *Files) WereRead(at Stamps) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read, f.seen = at, at
}

// Stirred reports whether Changed may find something new although none but the files of these indexes has
// changed since it last looked. It looks at these alone.
func (f *Files) Stirred(p Pass, files [2]bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	stirred := f.seen != f.read
	for i, look := range files {
		stirred = stirred || look && p.stat(f.Paths[i]) != f.read[i]
	}
	return stirred
}

// Changed reports whether the files have changed and are complete. soon means that they have
// changed but may not be complete.
func (f *Files) Changed(p Pass, now time.Time) (changed, soon bool) {
	is := f.at(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if is == f.read {
		f.seen = is
		return false, false
	}
	if f.seen == f.read {
		f.first = now
	}
	if is != f.seen {
		f.seen, f.since = is, now
	}
	rest := now.Sub(f.since) >= Settle || now.Sub(f.first) >= SettleMost
	return rest, !rest
}
