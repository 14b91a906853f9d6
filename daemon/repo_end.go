package daemon

import (
	"context"
	"time"

	"sluice/engine"
)

// landMost is how long an ended loop waits for its effects and its scan.
const landMost = 10 * time.Second

// atRest reports whether nothing is under way that a rescan could serve: no step runs or is on offer,
// no process lives, and nothing comes due before the rest is over. So the mark of being served is
// never older than a deadline that the next start must know of.
func (r *Repo) atRest() bool {
	if r.opt.Rest <= r.opt.Rescan || !r.scans.clean {
		return false
	}
	if at := r.nextWake(); !at.IsZero() && at.Before(r.opt.Now().Add(2*r.opt.Rest)) {
		return false
	}
	for _, run := range r.core.state.LiveRuns() {
		if len(run.Procs) > 0 {
			return false
		}
		for step := range run.Attempts {
			if a := run.Current(step); a != nil && a.State == engine.Running {
				return false
			}
		}
	}
	return true
}

// next waits for the next turn's batch; an empty batch means a clock woke it. Rare causes go first
// and in a fixed order: a full queue cannot delay a scan, and a simulation is reproducible.
func (r *Repo) next(ctx context.Context, c *clocks) (batch []item, ended bool) {
	for {
		select {
		case <-ctx.Done():
			return nil, true
		default:
		}
		select {
		case <-c.rescan.C:
			if r.rescan(c) {
				return r.queue.drain([]item{{ask: r.here}}), false
			}
			continue
		default:
		}
		select {
		case <-c.wake.C:
			return r.queue.drain(nil), false
		default:
		}
		select {
		case <-r.opt.World.Hints():
			r.scans.look(r.fl.ctx)
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return nil, true
		case <-c.rescan.C:
			if r.rescan(c) {
				return r.queue.drain([]item{{ask: r.here}}), false
			}
		case <-c.wake.C:
			return r.queue.drain(nil), false
		case <-r.opt.World.Hints():
			r.scans.look(r.fl.ctx)
		case <-r.opt.Changed:
			return r.queue.drain([]item{{event: engine.Configured{}}}), false
		case it := <-r.queue.items:
			return r.queue.drain([]item{*it}), false
		}
	}
}

// rescan reads all inboxes and reports whether the mark of being served is due.
func (r *Repo) rescan(c *clocks) (mark bool) {
	r.resting = r.atRest()
	c.set(r.resting)
	r.beat()
	r.scans.scan(r.fl.ctx)
	return r.opt.Now().Sub(r.marked).Abs() >= aliveEvery-min(r.opt.Rescan, aliveEvery)/2
}

// here writes the mark of being served. It runs at the end of a turn, so that a sleep of the
// machine is journaled before the mark could hide it from the next start.
func (r *Repo) here(*core) {
	r.marked = r.wall
	r.serve(r.wall)
}

// close journals what is decided and writes a snapshot. Agents keep running.
func (r *Repo) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stallMost)
	defer cancel()
	now := r.opt.Now()
	if woken, slept := r.slept(now); slept {
		r.core.take(woken, now)
	}
	done, err := r.commit(ctx)
	r.publish(done)
	if err == nil {
		r.serve(now)
		r.snapshot()
	}
	return err
}

// spawn starts a goroutine that land waits for.
func (r *Repo) spawn(f func()) { r.goroutines.Go(f) }

// land stops the waiting for all effects and the scan; what the effects started keeps running.
func (r *Repo) land(stop context.CancelFunc) {
	stop()
	through := make(chan struct{})
	go func() { // ends with the last of them, even after landMost
		r.goroutines.Wait()
		close(through)
	}()
	deadline := time.NewTimer(landMost)
	defer deadline.Stop()
	for waiting := true; waiting; {
		select {
		case <-through:
			waiting = false
		case <-r.queue.items: // let it post
		case <-deadline.C:
			waiting = false
		}
	}
	r.followers.end()
}
