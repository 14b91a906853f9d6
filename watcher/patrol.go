package watcher

import (
	"sluice/internal/alarm"
	"sluice/internal/atomicfile"
)

// patrol looks at the folders that have a working watch, every Check, and wakes the keeper for those that
// have changed. It makes no system call that could block, so an idle process wakes once, in one thread.
// Where the kernel lacks such calls, there is no patrol, and the keeper looks at every folder.
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

// newPatrol returns nil where the kernel lacks the calls.
func newPatrol() *patrol {
	peek := atomicfile.NewPeek()
	if peek == nil {
		return nil
	}
	return &patrol{alarm: alarm.New(), peek: peek}
}

// run looks at the folders every Check until the alarm is closed.
func (p *patrol) run(w *Watcher) {
	before := w.opt.Now()
	for p.alarm.Wait(boundary(before, w.opt.Check).Sub(w.opt.Now())) {
		now := w.opt.Now()
		if p.round(w) || jumped(before, now) { // a clock jumped: the keeper checks all
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

// minds reports whether the patrol looks at f; a nil patrol looks at none. The caller holds Watcher.mu.
func (p *patrol) minds(f *folder) bool {
	return p != nil && f.armed != identity{} && !f.polling && !f.hung
}
