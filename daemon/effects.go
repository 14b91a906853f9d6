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
	byKey map[string]*flight // the newest of each key: run and stop of one process never overlap
	last  map[string]time.Time
	ctx   context.Context
	spawn func(func()) // starts a goroutine; the simulation runs it when its seed says so
}

func newFlights(ctx context.Context, world World, spawn func(func()), post func(item)) *flights {
	return &flights{world: world, post: post, spawn: spawn, on: map[string]*flight{}, byKey: map[string]*flight{}, last: map[string]time.Time{}, ctx: ctx}
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

// start carries an effect out in a goroutine of its own, after the one before it with the same key is gone.
func (f *flights) start(job Job) {
	name, key := job.Name(), job.Key
	ctx, cancel := context.WithCancel(f.ctx)
	fl := &flight{effect: job.Effect, cancel: cancel, done: make(chan struct{})}
	before := f.byKey[key]
	f.on[name], f.byKey[key] = fl, fl
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
	if f.byKey[fl.effect.Key] == fl {
		delete(f.byKey, fl.effect.Key)
	}
}
