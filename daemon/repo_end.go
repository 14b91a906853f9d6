package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"sluice/engine"
)

// landMost is how long an ended loop waits for its effects and its scan.
const landMost = 10 * time.Second

// clocks are the timers that wake the loop.
type clocks struct {
	rescan, wake *time.Timer
	rest         bool // rescan is set for a rest
}

func (r *Repo) newClocks() *clocks {
	return &clocks{rescan: time.NewTimer(r.toRescan()), wake: time.NewTimer(0)}
}

func (c *clocks) stop() {
	c.rescan.Stop()
	c.wake.Stop()
}

// follow ends the rest of the timer when the loop's is over.
func (c *clocks) follow(r *Repo) {
	if c.rest && !r.resting {
		c.set(r)
	}
}

func (c *clocks) set(r *Repo) {
	c.rest = r.resting
	c.rescan.Reset(r.toRescan())
}

// toRescan returns the time to the next rescan. All repos of a daemon rescan at the same moments,
// so that an idle machine wakes once for all.
func (r *Repo) toRescan() time.Duration {
	now, every := r.opt.Now(), min(r.opt.Rescan, aliveEvery)
	if r.resting {
		every = r.opt.Rest
	}
	return r.opt.Pace(now.Truncate(every).Add(every).Sub(now))
}

// atRest reports whether nothing is under way that a rescan could serve: no step runs or is on offer,
// no process lives, and nothing comes due before the rest is over. So the mark of being served is
// never older than a deadline that the next start must know of.
func atRest(r *Repo) bool {
	if r.opt.Rest <= r.opt.Rescan || !r.clean {
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
				return r.drain([]item{{ask: r.here}}), false
			}
			continue
		default:
		}
		select {
		case <-c.wake.C:
			return r.drain(nil), false
		default:
		}
		select {
		case <-r.opt.World.Hints():
			r.look(r.fl.ctx)
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return nil, true
		case <-c.rescan.C:
			if r.rescan(c) {
				return r.drain([]item{{ask: r.here}}), false
			}
		case <-c.wake.C:
			return r.drain(nil), false
		case <-r.opt.World.Hints():
			r.look(r.fl.ctx)
		case cfg := <-r.opt.Changed:
			return r.drain([]item{{event: engine.Configured{Config: cfg}}}), false
		case it := <-r.queue:
			return r.drain([]item{*it}), false
		}
	}
}

// rescan reads all inboxes and reports whether the mark of being served is due.
func (r *Repo) rescan(c *clocks) (mark bool) {
	r.resting = atRest(r)
	c.set(r)
	r.beat()
	r.scan(r.fl.ctx)
	return r.opt.Now().Sub(r.marked).Abs() >= aliveEvery-min(r.opt.Rescan, aliveEvery)/2
}

// here writes the mark of being served. It runs at the end of a turn, so that a sleep of the
// machine is journaled before the mark could hide it from the next start.
func (r *Repo) here(*core) {
	r.marked = r.wall
	r.serve(r.wall)
}

// drain adds the queued items to the batch: one sync serves them all.
func (r *Repo) drain(batch []item) []item {
	for len(batch) < batchMost && len(r.queue) > 0 {
		batch = append(batch, *<-r.queue)
	}
	return batch
}

func (r *Repo) aliveFile() string { return filepath.Join(r.opt.State, "alive") }

// lastServed returns when the repo was last served; zero if unknown.
func (r *Repo) lastServed() time.Time {
	if r.opt.Root == "" {
		return time.Time{}
	}
	st, err := os.Stat(r.aliveFile())
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (r *Repo) markServed(now time.Time) {
	if r.opt.Root != "" && os.Chtimes(r.aliveFile(), now, now) != nil {
		_ = os.WriteFile(r.aliveFile(), nil, 0o600) // only a start's guess of the time away depends on it
	}
}

// endExport waits a while for the exports to finish; the next start adds what is missing.
func (r *Repo) endExport() {
	if r.exp == nil {
		return
	}
	close(r.exp.in)
	most := time.NewTimer(landMost)
	defer most.Stop()
	select {
	case <-r.exp.done:
	case <-most.C:
		r.opt.Log.Warn().Str("repo",
			r.opt.Root).Msg("the audit export does not come to an end; the next start adds what is missing")
	}
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
	return errors.Join(err, r.core.log.Close())
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
		case <-r.queue: // let it post
		case <-deadline.C:
			waiting = false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ch := range r.subs {
		close(ch)
	}
	r.subs = nil
}
