package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/journal"
)

// waiting is a caller that gets its reply once the decision is journaled.
type waiting struct {
	reply chan<- doneReply
	n     int // index in pending; -1: nothing was decided
	facts []engine.Fact
}

// turn decides on a batch, journals it with one sync, and only then answers and acts.
func (r *Repo) turn(ctx context.Context, batch []item) error {
	now := r.opt.Now()
	var asks []func(*core)
	if now.Round(0).Before(r.wall.Round(0)) {
		asks = append(asks, r.here) // or the mark would be later than all that follows
	}
	if woken, slept := r.slept(now); slept { // before anything that could close what happened meanwhile
		r.core.take(woken, now)
	}
	if !r.stalled.To.IsZero() {
		r.core.take(r.stalled, now)
		r.stalled = engine.Woken{}
	}
	// compare wall clocks only: the steady clock, also in both, is never set back
	if wall := now.Round(0); wall.Before(r.ticked) {
		r.ticked = wall // the clock was set back: earlier ticks do not cover what is due from here
	}
	replies, questions := r.decide(batch, now)
	asks = append(asks, questions...)
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
	if r.resting && (len(done) > 0 || !r.scans.clean) { // the mark of being served is as old as the rest
		r.resting = false
		r.here(nil)
	}
	r.act(now)
	return nil
}

// decide decides on a batch, and returns the replies and questions that are due once it is journaled.
func (r *Repo) decide(batch []item, now time.Time) (replies []waiting, asks []func(*core)) {
	for _, it := range batch {
		if it.landed != nil {
			r.fl.land(it.landed, now)
		}
		if it.ask != nil {
			asks = append(asks, it.ask)
		}
		if !it.began.IsZero() {
			r.scans.take(it, now)
		}
		if it.event == nil || it.over != nil && !it.over.CompareAndSwap(false, true) {
			continue
		}
		if _, ok := it.event.(engine.Configured); ok { // newer ones may have been read since it was queued
			it.event = engine.Configured{Config: r.opt.Config()}
		}
		facts := r.core.take(it.event, now)
		if it.reply != nil {
			w := waiting{reply: it.reply, n: -1, facts: facts}
			if len(facts) > 0 {
				w.n = len(r.core.pending) - 1
			}
			replies = append(replies, w)
		}
		r.scans.seen(it.event)
	}
	return replies, asks
}

// tellSpent reports the day's use if it has changed.
func (r *Repo) tellSpent() {
	if r.opt.Spent == nil {
		return
	}
	used := r.day.changed(r.core.state.Today, r.core.state.Config.Day)
	if used == nil {
		return
	}
	if told := r.opt.Spent(*used); len(told) > 0 {
		r.spawn(func() { // the loop must not wait for room in its own queue
			for _, ev := range told {
				r.queue.post(item{event: ev})
			}
		})
	}
}

// commit journals what is pending. While the disk refuses it, nothing is acknowledged or launched,
// and agents keep running. It recovers by itself.
func (r *Repo) commit(ctx context.Context) ([]entry, error) {
	var all []entry
	wait, began := stallFirst, r.opt.Now()
	for {
		done, err := r.core.commit()
		all = append(all, done...)
		if err == nil {
			r.troubles.setStall(nil)
			if now := r.opt.Now(); now.Sub(began) > engine.GapAllowed { // nobody could answer or object
				r.stalled = engine.Woken{From: began.Round(0), To: now.Round(0)}
			}
			return all, nil
		}
		if !errors.Is(err, journal.ErrStalled) {
			return all, fmt.Errorf("journal of %s: %w", r.opt.Root, err)
		}
		r.troubles.setStall(err)
		r.beat() // it waits, and does not hang
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
	r.asks.report(changed) // before the notices of those rounds are sent
	r.retryAt = r.fl.reconcile(changed, r.orders, now)
	r.scans.goOn(r.fl.ctx)
}

// snapshot writes a snapshot, which makes the next start faster.
func (r *Repo) snapshot() {
	if err := r.core.save(); err != nil {
		r.core.since = 0 // not again at once
		r.opt.Log.Warn().Err(err).Str("repo", r.opt.Root).Msg("no snapshot could be written")
	}
}
