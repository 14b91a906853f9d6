package launch

import (
	"sync"
	"time"

	"sluice/internal/tree"
)

// sweepAfter is how long the git folder of an ended launch is kept for the next launch to remove, while
// that one works: before, a launch needs the disk itself. Without a next launch, it is removed then.
const sweepAfter = time.Second

// leftovers are git folders of ended launches, to be removed.
type leftovers struct {
	logf func(string, ...any)

	mu    sync.Mutex
	gone  []string
	timer *time.Timer // nil = gone is empty
}

// add leaves a folder to the next sweep. It calls later after sweepAfter, unless a sweep comes first.
func (l *leftovers) add(dir string, later func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone = append(l.gone, dir); l.timer == nil {
		l.timer = time.AfterFunc(sweepAfter, later)
	}
}

// sweep removes the folders.
func (l *leftovers) sweep() {
	l.mu.Lock()
	gone, timer := l.gone, l.timer
	l.gone, l.timer = nil, nil
	l.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	for _, dir := range gone {
		if err := tree.Remove(dir); err != nil {
			l.logf("the git folder of an ended launch: %v", err)
		}
	}
}
