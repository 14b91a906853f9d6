package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/journal"
)

// turn decides on a batch, journals it with one sync, and only then answers and acts.
func (r *Repo) turn(ctx context.Context, batch []item) error {
	now := r.opt.Now()
	type waiting struct {
		reply chan<- doneReply
		n     int // index in pending; -1: nothing was decided
		facts []engine.Fact
	}
	var replies []waiting
	var asks []func(*core)
	if now.Round(0).Before(r.wall.Round(0)) {
		asks = append(asks, r.here) // or the mark would be later than all that follows
	}
	if woken, slept := r.slept(now); slept { // before anything that could close what happened meanwhile
		r.core.take(woken, now)
	}
	// compare wall clocks only: the steady clock, also in both, is never set back
	if wall := now.Round(0); wall.Before(r.ticked) {
		r.ticked = wall // the clock was set back: earlier ticks do not cover what is due from here
	}
	for _, it := range batch {
		if it.landed != nil {
			r.fl.land(it.landed, now)
		}
		if it.ask != nil {
			asks = append(asks, it.ask)
		}
		if !it.began.IsZero() {
			r.takeScan(it, now)
		}
		if it.event == nil {
			continue
		}
		facts := r.core.take(it.event, now)
		if it.reply != nil {
			w := waiting{reply: it.reply, n: -1, facts: facts}
			if len(facts) > 0 {
				w.n = len(r.core.pending) - 1
			}
			replies = append(replies, w)
		}
		switch ev := it.event.(type) {
		case engine.ProcessEnded:
			// its sentinel may be there with the hint still to come
			r.scanAgain = r.scanAgain || r.awaited(ev)
		case engine.FileMoved:
			if r.scanning {
				r.moved[ev.ID] = true
			}
		}
	}
	if wake := r.core.state.Wake(r.ticked); !wake.IsZero() && !wake.After(now) {
		r.ticked = now
		r.core.take(engine.Ticked{}, now)
	}
	done, err := r.commit(ctx)
	if err != nil {
		return err
	}
	for _, w := range replies {
		d := doneReply{facts: w.facts}
		if w.n >= 0 && w.n < len(done) {
			d.rec = done[w.n].rec
		}
		w.reply <- d
	}
	r.publish(done)
	r.tellSpent()
	for _, ask := range asks {
		ask(r.core)
	}
	if r.resting && (len(done) > 0 || !r.clean) { // the mark of being served is as old as the rest
		r.resting = false
		r.here(nil)
	}
	r.act(now)
	return nil
}

// tellSpent reports the day's use if it has changed.
func (r *Repo) tellSpent() {
	now, most := r.core.state.Today, r.core.state.Config.Day
	if r.opt.Spent == nil ||
		r.spentOf == most && r.spent != nil && r.spent.Day == now.Day && r.spent.Usage == now.Usage &&
			len(r.spent.Told) == len(now.Told) {
		return
	}
	now.Told = maps.Clone(now.Told)
	r.spent, r.spentOf = &now, most
	if told := r.opt.Spent(now); len(told) > 0 {
		r.spawn(func() { // the loop must not wait for room in its own queue
			for _, ev := range told {
				r.post(item{event: ev})
			}
		})
	}
}

// commit journals what is pending. While the disk refuses it, nothing is acknowledged or launched,
// and agents keep running. It recovers by itself.
func (r *Repo) commit(ctx context.Context) ([]entry, error) {
	var all []entry
	wait := stallFirst
	for {
		done, err := r.core.commit()
		all = append(all, done...)
		if err == nil {
			r.setStall("")
			return all, nil
		}
		if !errors.Is(err, journal.ErrStalled) {
			return all, fmt.Errorf("journal of %s: %w", r.opt.Root, err)
		}
		r.setStall(err.Error())
		if !health.Wait(ctx, wait) {
			return all, fmt.Errorf("journal of %s: stopped while it could not be written; what was not acknowledged is "+
				"dropped: %w", r.opt.Root, err)
		}
		wait = min(wait*2, stallMost)
	}
}

// act starts what is owed, and writes a snapshot if one is due.
func (r *Repo) act(now time.Time) {
	if r.core.snapshotDue() {
		r.snapshot()
	}
	changed := r.core.state.Changed(r.core.spec)
	r.tellAsked(changed) // before the notices of those rounds are sent
	r.retryAt = r.fl.reconcile(changed, r, now)
	switch {
	case r.scanning:
	case r.scanAgain:
		r.scan(r.fl.ctx)
	case r.lookAgain:
		r.look(r.fl.ctx)
	}
}

// snapshot writes a snapshot, which makes the next start faster.
func (r *Repo) snapshot() {
	if err := r.core.save(); err != nil {
		r.core.since = 0 // not again at once
		r.opt.Log.Warn().Err(err).Str("repo", r.opt.Root).Msg("no snapshot could be written")
	}
}
