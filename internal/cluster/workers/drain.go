package workers

import (
	"context"
	"time"

	"sluice/internal/fault"
	"sluice/internal/layout"
)

// drains is whether a worker drains, and the request that has said so last. It is on disk: a restart
// changes nothing.
type drains struct {
	Drains bool      `json:"drains"`
	Epoch  int64     `json:"epoch"`
	At     time.Time `json:"at"`
}

// drain has the worker drain, or take orders again. A request counts once: not after a newer one, nor
// when it is repeated. The caller holds the lock.
func (p *Post) drain(c call) (answer, error) {
	if c.Epoch == p.drains.Epoch && !c.At.After(p.drains.At) {
		return refusal("a newer one was heard since"), nil
	}
	if p.leaves {
		return refusal("the worker is ending"), nil
	}
	now := drains{Drains: c.Do == doDrain, Epoch: c.Epoch, At: c.At}
	if err := layout.Save(p.path(drainFile), now); err != nil {
		return answer{}, err
	}
	p.drains = now
	return answer{Is: isDone}, nil
}

// drained reports whether the worker no longer takes a launch: it drains, and has never had it. The
// correction of an answer is part of the launch that gave it. The caller holds the lock.
func (p *Post) drained(key string) bool {
	return (p.drains.Drains || p.leaves) && p.keys[layout.LaunchOf(key)] == nil
}

// leave has the worker end once it has finished what it has.
func (p *Post) leave() {
	p.mu.Lock()
	p.leaves = true
	n := p.has()
	p.mu.Unlock()
	if n > 0 && p.opt.Leaves != nil {
		p.opt.Leaves(n)
	}
}

// left reports whether the worker was asked to end, and has nothing to finish.
func (p *Post) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaves && p.has() == 0
}

// has returns how many launches the worker has to finish, or their results to hand over. The caller
// holds the lock.
func (p *Post) has() (n int) {
	for _, m := range p.keys {
		if !m.Over {
			n++
		}
	}
	return n
}

// Drain has a worker finish what it has and take nothing new; or, without drain, take orders again. It
// does nothing that lasts on this machine.
func (d *Desk) Drain(ctx context.Context, worker string, drain bool) error {
	what := map[bool]string{true: doDrain, false: doResume}[drain]
	beat, silent := d.of(worker)
	if beat.Worker == "" || silent > d.silence() {
		return fault.Failed("`sluice workers` lists them", "no worker %s is there", plain(worker))
	}
	a, err := d.ask(ctx, worker, call{Do: what})
	if err != nil {
		return fault.Failed("`sluice workers` shows what it does", "worker %s has not answered: %w", worker, err)
	}
	if a.Is != isDone {
		return fault.Failed("`sluice workers` shows what it does", "worker %s does not %s: %s", worker, what, a.Why)
	}
	return nil
}
