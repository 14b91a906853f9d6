package watcher

import (
	"time"

	"sluice/internal/atomicfile"
)

// looked is what a look at a folder found.
type looked struct {
	answered bool
	st       atomicfile.Stat
	silent   string // why its file system sends no events of others' changes; "" = it does
	err      error
}

// lookAt looks at folders, one after another in one goroutine: an idle process wakes once for all. A
// folder whose file system does not answer in time, for example because its server is gone, is given
// up until it does, and another goroutine goes on with the next. No lock that other folders need is
// held meanwhile.
func lookAt(w *Watcher, folders []*folder) []looked {
	walk := &walk{w: w, folders: folders, found: make([]looked, len(folders))}
	for walk.at < len(folders) {
		walk.on()
	}
	return walk.found
}

// walk is a look at many folders. Watcher.mu guards found and at.
type walk struct {
	w       *Watcher
	folders []*folder
	found   []looked
	at      int // the folder that is looked at, or was given up
}

// on looks at the folders from at on, to the end or to one that does not answer.
func (k *walk) on() {
	w, through, given := k.w, make(chan struct{}), false
	from := k.at
	w.mu.Lock()
	if w.closed { // nobody waits for more goroutines
		k.at = len(k.folders)
		w.mu.Unlock()
		return
	}
	w.done.Go(func() {
		defer close(through)
		k.from(from, &given)
	})
	w.mu.Unlock()
	timer := time.NewTimer(lookWait)
	defer timer.Stop()
	for last := from; ; {
		select {
		case <-through:
			return
		case <-timer.C:
		}
		timer.Reset(lookWait)
		w.mu.Lock()
		if given = k.at == last && k.at < len(k.folders); given {
			f := k.folders[k.at]
			w.setLocked(f, func() { f.hung, f.armed, f.reason = true, identity{}, "the file system does not answer" })
			k.at++
			w.mu.Unlock()
			return
		}
		last = k.at
		w.mu.Unlock()
	}
}

// from looks at the folders from i on. given reports that the walk has gone on without it, from the
// folder after the one it looks at or, on a busy machine, was about to look at.
func (k *walk) from(i int, given *bool) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; i < len(k.folders); i++ {
		f := k.folders[i]
		if !*given && !f.hung && !f.gone && !w.closed {
			armed := f.armed
			w.mu.Unlock()
			l := lookOnce(f.path, armed)
			w.mu.Lock()
			if !*given {
				k.found[i] = l
			}
		}
		if *given {
			f.hung, w.urgent[f] = false, true
			poke(w.kick)
			return
		}
		k.at = i + 1
	}
}

// lookOnce looks at the folder at path. The file system of one that is still the watched one is known.
func lookOnce(path string, armed identity) looked {
	l := looked{answered: true}
	l.st, l.err = folderAt(path)
	if l.err == nil && identityOf(l.st) != armed {
		l.silent = silent(path)
	}
	return l
}
