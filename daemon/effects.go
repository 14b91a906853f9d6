package daemon

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// again is the delay before an effect that is still owed after its result is carried out again.
const again = time.Second

// movesMost is the most concurrent file moves: a burst of signals owes one move each. Every other
// effect starts at once, so that a hanging notice delays nothing.
const movesMost = 32

type flight struct {
	effect engine.Effect
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine has ended
}

// flights are one repo's running effects. The loop's goroutine owns it.
type flights struct {
	world World
	post  func(item)
	by    map[engine.Debtor]*debt
	late  []engine.Debtor    // debtors with a landed effect that may still be owed
	lanes map[string]*flight // the newest of each lane; a lane's effects never overlap
	owed  []engine.Effect    // scratch space

	moving int             // running moves
	queued []engine.Debtor // debtors whose move waits for another to land
	ctx    context.Context
	spawn  func(func())
	holds  func() bool // whether effects may begin now; nil: they may
}

// debt is what runs for one debtor, by effect name.
type debt struct {
	on   map[string]*flight
	last map[string]time.Time // when an effect that is still owed landed
}

func newFlights(ctx context.Context, world World, spawn func(func()), post func(item)) *flights {
	return &flights{world: world, post: post, spawn: spawn, by: map[engine.Debtor]*debt{}, lanes: map[string]*flight{},
		ctx: ctx}
}

// debts is what reconcile needs of the engine and the loop.
type debts interface {
	owedBy(out []engine.Effect, who engine.Debtor) []engine.Effect
	job(engine.Effect) job.Job // for an effect that starts
}

// reconcile starts owed effects that do not run and cancels running ones that are no longer owed.
// It covers the changed debtors and those with a landed effect. It returns when to call it again;
// zero: never.
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
	for f.moving < movesMost && len(f.queued) > 0 { // before new ones
		who := f.queued[0]
		f.queued = f.queued[1:]
		settle(who)
	}
	for _, whose := range [][]engine.Debtor{changed, late} {
		for _, who := range whose {
			settle(who)
		}
	}
	slices.SortFunc(f.late,
		func(a, b engine.Debtor) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	f.late = slices.Compact(f.late)
	return next
}

// settle makes one debtor's running effects match what it owes.
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
	maps.DeleteFunc(d.last, func(name string, _ time.Time) bool { return !wanted[name] })
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

// lane returns a key shared by effects that must not overlap: run and stop of one process, or an
// effect and itself. The watch for a step's commit has its launch's key but runs beside it.
func lane(e engine.Effect) string {
	if e.Kind == engine.DoRun || e.Kind == engine.DoStop {
		return e.Key
	}
	if e.Kind == engine.DoTasks || e.Kind == engine.DoSave { // one reads what the other wrote
		return "tasks " + e.Run
	}
	if e.Kind == engine.DoForge { // a comment is read once
		return "forge " + e.Run
	}
	if e.Tree != "" { // each starts from the previous one's branch, even if child runs share a worktree
		return "branch " + e.Tree
	}
	return e.Name()
}

// start carries an effect out in its own goroutine, after the previous one in its lane has ended.
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
		if ctx.Err() == nil && (f.holds == nil || f.holds()) { // else it stays owed
			ev = f.world.Carry(ctx, job, func(ev engine.Event) { f.post(item{event: ev}) })
		}
		cancel()
		f.post(item{event: ev, landed: fl})
	})
	return fl
}

// land records that an effect's goroutine has ended. The same item carries its result.
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
