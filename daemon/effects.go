package daemon

import (
	"context"
	"time"

	"sluice/engine"
)

// again is how long an effect that is still owed after its result was taken in waits before it is carried out again.
const again = time.Second

// flight is an effect under way.
type flight struct {
	effect engine.Effect
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine is gone
}

// flights are the effects of one repo under way, by name. It belongs to the loop's goroutine.
type flights struct {
	world World
	post  func(item)
	on    map[string]*flight
	lanes map[string]*flight // the newest of each lane: the effects of one never overlap
	last  map[string]time.Time
	ctx   context.Context
	spawn func(func())
}

func newFlights(ctx context.Context, world World, spawn func(func()), post func(item)) *flights {
	return &flights{world: world, post: post, spawn: spawn, on: map[string]*flight{}, lanes: map[string]*flight{}, last: map[string]time.Time{}, ctx: ctx}
}

// reconcile starts what is owed and not under way, and lets go of what is under way and not owed any more. job is called
// for what starts. It gives when it should be called again, zero for never.
func (f *flights) reconcile(owed []engine.Effect, now time.Time, job func(engine.Effect) Job) (next time.Time) {
	wanted := make(map[string]bool, len(owed))
	for _, e := range owed {
		wanted[e.Name()] = true
	}
	for name, fl := range f.on {
		if !wanted[name] {
			fl.cancel()
			delete(f.on, name)
		}
	}
	for name := range f.last {
		if !wanted[name] {
			delete(f.last, name)
		}
	}
	for _, e := range owed {
		name := e.Name()
		if f.on[name] != nil {
			continue
		}
		if at := f.last[name].Add(again); !f.last[name].IsZero() && now.Before(at) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		f.start(job(e))
	}
	return next
}

// lane is what effects that must not overlap have in common: run and stop of one process, and an effect with itself. The
// watch for a step's commit has its launch's key too, but goes on beside it.
func lane(e engine.Effect) string {
	if e.Kind == engine.DoRun || e.Kind == engine.DoStop {
		return e.Key
	}
	return e.Name()
}

// start carries an effect out in a goroutine of its own, after the one before it in its lane is gone.
func (f *flights) start(job Job) {
	name, lane := job.Name(), lane(job.Effect)
	ctx, cancel := context.WithCancel(f.ctx)
	fl := &flight{effect: job.Effect, cancel: cancel, done: make(chan struct{})}
	before := f.lanes[lane]
	f.on[name], f.lanes[lane] = fl, fl
	f.spawn(func() {
		defer close(fl.done)
		if before != nil {
			<-before.done
		}
		var ev engine.Event
		if ctx.Err() == nil {
			ev = f.world.Carry(ctx, job, func(ev engine.Event) { f.post(item{event: ev}) })
		}
		cancel()
		f.post(item{event: ev, landed: fl})
	})
}

// land notes that an effect's goroutine is through; its result is taken in with the same item.
func (f *flights) land(fl *flight, now time.Time) {
	name := fl.effect.Name()
	if f.on[name] == fl {
		delete(f.on, name)
		f.last[name] = now
	}
	if l := lane(fl.effect); f.lanes[l] == fl {
		delete(f.lanes, l)
	}
}
