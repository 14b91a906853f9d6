package watcher

import (
	"sluice/internal/alarm"
	"sluice/internal/atomicfile"
)

// patrol looks at the folders that are watched well, each Check, and wakes the keeper for those that
// are not as they were. It makes no system call that could block, so an idle process wakes once, in one
// thread. Where the kernel has no such look, there is no patrol: the keeper looks at every folder.
type patrol struct {
	alarm *alarm.Alarm
	peek  *atomicfile.Peek
	posts []post // of one round; kept for the next
}

// post is a folder as the patrol should find it.
type post struct {
	f     *folder
	armed identity
}

// newPatrol returns nil where there can be none.
func newPatrol() *patrol {
	peek := atomicfile.NewPeek()
	if peek == nil {
		return nil
	}
	return &patrol{alarm: alarm.New(), peek: peek}
}

// run looks around until the alarm is closed.
func (p *patrol) run(w *Watcher) {
	before := w.opt.Now()
	for p.alarm.Wait(boundary(before, w.opt.Check).Sub(w.opt.Now())) {
		now := w.opt.Now()
		if p.round(w) || jumped(before, now) { // the keeper finds out what jumped
			poke(w.kick)
		}
		before = now
	}
}

// round looks at all folders of the patrol once, and reports whether the keeper must look at some.
func (p *patrol) round(w *Watcher) (amiss bool) {
	w.mu.Lock()
	for _, f := range w.folders {
		if p.minds(f) {
			p.posts = append(p.posts, post{f, f.armed})
		}
	}
	w.mu.Unlock()
	rest := p.posts[:0]
	for _, at := range p.posts {
		if st, ok := p.peek.Dir(at.f.path); !ok || identityOf(st) != at.armed || at.f.memory.missed(st) {
			rest = append(rest, at)
		}
	}
	w.mu.Lock()
	for _, at := range rest {
		if !at.f.gone {
			w.urgent[at.f], amiss = true, true
		}
	}
	w.mu.Unlock()
	clear(p.posts)
	p.posts = p.posts[:0]
	return amiss
}

// minds reports whether f is one of its folders. The caller holds the Watcher's mu. There may be no patrol.
func (p *patrol) minds(f *folder) bool {
	return p != nil && f.armed != identity{} && !f.polling && !f.hung
}
