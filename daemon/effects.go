package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// again is how long an effect that is still owed after its result was taken in waits before it is carried out again.
const again = time.Second

// movesMost is how many files are moved at a time: a burst of signals owes one move each. All else has its own goroutine at
// once: a notice that hangs delays nothing.
const movesMost = 32

// flight is an effect under way.
type flight struct {
	effect engine.Effect
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine is gone
}

// flights are the effects of one repo under way. It belongs to the loop's goroutine.
type flights struct {
	world World
	post  func(item)
	by    map[engine.Debtor]*debt
	late  []engine.Debtor    // those with an effect that has landed and may still be owed
	lanes map[string]*flight // the newest of each lane: the effects of one never overlap
	owed  []engine.Effect    // room for what one owes

	moving int             // moves under way
	queued []engine.Debtor // who owes a move that waits for another to land
	ctx    context.Context
	spawn  func(func())
}

// debt is what is under way for one debtor, by name.
type debt struct {
	on   map[string]*flight
	last map[string]time.Time // when one that is still owed has landed
}

func newFlights(ctx context.Context, world World, spawn func(func()), post func(item)) *flights {
	return &flights{world: world, post: post, spawn: spawn, by: map[engine.Debtor]*debt{}, lanes: map[string]*flight{}, ctx: ctx}
}

// debts is what reconcile asks the engine and the loop.
type debts interface {
	owedBy(out []engine.Effect, who engine.Debtor) []engine.Effect
	job(engine.Effect) job.Job // for what starts
}

// reconcile starts what is owed and not under way, and lets go of what is under way and not owed any more. It looks at
// those whose debts may have changed, and at those for whom something has landed. It gives when it should be called
// again, zero for never.
func (f *flights) reconcile(changed []engine.Debtor, from debts, now time.Time) (next time.Time) {
	late := f.late
	f.late = nil
	settle := func(who engine.Debtor) {
		if at := f.settle(who, from, now); !at.IsZero() {
			f.late = append(f.late, who)
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	for f.moving < movesMost && len(f.queued) > 0 { // before any that is new
		who := f.queued[0]
		f.queued = f.queued[1:]
		settle(who)
	}
	for _, whose := range [][]engine.Debtor{changed, late} {
		for _, who := range whose {
			settle(who)
		}
	}
	slices.SortFunc(f.late, func(a, b engine.Debtor) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	f.late = slices.Compact(f.late)
	return next
}

// settle brings what is under way for one in line with what it owes.
func (f *flights) settle(who engine.Debtor, from debts, now time.Time) (next time.Time) {
	f.owed = from.owedBy(f.owed[:0], who)
	d := f.by[who]
	if d == nil {
		if len(f.owed) == 0 {
			return next
		}
		d = &debt{on: map[string]*flight{}, last: map[string]time.Time{}}
		f.by[who] = d
	}
	wanted := make(map[string]bool, len(f.owed))
	for i := range f.owed {
		wanted[f.owed[i].Name()] = true
	}
	for name, fl := range d.on {
		if !wanted[name] {
			fl.cancel()
			delete(d.on, name)
		}
	}
	for name := range d.last {
		if !wanted[name] {
			delete(d.last, name)
		}
	}
	for _, e := range f.owed {
		name := e.Name()
		if d.on[name] != nil {
			continue
		}
		if at := d.last[name].Add(again); !d.last[name].IsZero() && now.Before(at) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		if e.Kind == engine.DoMove {
			if f.moving == movesMost {
				f.queued = append(f.queued, who)
				continue
			}
			f.moving++
		}
		d.on[name] = f.start(from.job(e))
	}
	if len(d.on)+len(d.last) == 0 {
		delete(f.by, who)
	}
	return next
}

// lane is what effects that must not overlap have in common: run and stop of one process, and an effect with itself. The
// watch for a step's commit has its launch's key too, but goes on beside it.
func lane(e engine.Effect) string {
	if e.Kind == engine.DoRun || e.Kind == engine.DoStop {
		return e.Key
	}
	if e.Kind == engine.DoTasks || e.Kind == engine.DoSave { // one reads what the other has written
		return "tasks " + e.Run
	}
	if e.Tree != "" { // each begins where the one before has left the branch, also where child runs share a worktree
		return "branch " + e.Tree
	}
	return e.Name()
}

// start carries an effect out in a goroutine of its own, after the one before it in its lane is gone.
func (f *flights) start(job job.Job) *flight {
	lane := lane(job.Effect)
	ctx, cancel := context.WithCancel(f.ctx)
	fl := &flight{effect: job.Effect, cancel: cancel, done: make(chan struct{})}
	before := f.lanes[lane]
	f.lanes[lane] = fl
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
	return fl
}

// land notes that an effect's goroutine is through; its result is taken in with the same item.
func (f *flights) land(fl *flight, now time.Time) {
	if fl.effect.Kind == engine.DoMove {
		f.moving--
	}
	name, who := fl.effect.Name(), fl.effect.Debtor()
	if d := f.by[who]; d != nil && d.on[name] == fl {
		delete(d.on, name)
		d.last[name] = now
		f.late = append(f.late, who)
	}
	if l := lane(fl.effect); f.lanes[l] == fl {
		delete(f.lanes, l)
	}
}
