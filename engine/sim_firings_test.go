package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"sluice/tools/oracle"
)

// fates holds what becomes of triggers' keys against the model.
type fates struct{ oracle.Keys }

// take holds facts against what came before, and returns what is wrong.
func (k fates) take(facts []Fact) string {
	for _, f := range facts {
		why := ""
		switch f := f.(type) {
		case TriggerFired:
			why = k.Fired(f.Workflow + " " + f.Firing.Trigger + " " + f.Firing.Key)
		case TriggerSkipped:
			if f.Key != "" { // minutes that were missed
				why = k.Skipped(f.Workflow+" "+f.Trigger+" "+f.Key, f.Why)
			}
		case RunStarted:
			if f.Fired != nil {
				why = k.Started(f.Workflow+" "+f.Fired.Trigger+" "+f.Fired.Key, f.Run)
			}
		case TriggersHeld:
			if f.Why == "" {
				why = f.Workflow + " is held without a reason"
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// kept holds that the state waits for what fired and has neither run nor reason, and for nothing else.
func (k fates) kept(st *State) string {
	waiting := map[string]bool{}
	for id, a := range st.Armed {
		for _, f := range a.Firings {
			waiting[id+" "+f.Trigger+" "+f.Key] = true
		}
	}
	return k.Waiting(waiting)
}

// genOn draws the triggers of a workflow. Its schedule ends, as a history does.
func genOn(g *rand.Rand) *On {
	span := time.Duration(1+g.IntN(7)) * time.Minute
	schedule := every(OnSchedule, span, pick(g, CatchOne, CatchAll, CatchNone))
	next := schedule.Next
	schedule.Next = func(t time.Time) time.Time {
		if at := next(t); at.Unix() < simEpoch+3000 {
			return at
		}
		return time.Time{}
	}
	on := &On{Triggers: []*Trigger{schedule, kind(OnFiles), kind(OnIssue)}, MaxPerDay: 1 + g.IntN(8),
		Overlap: pick(g, OverlapQueue, OverlapQueue, OverlapSkip, OverlapParallel, OverlapReplace)}
	if asks := g.IntN(2) == 0; g.IntN(4) == 0 {
		on.Confirm = &asks
	}
	return on
}

// trigger is what happens to triggers at any time: a source reports something, new or once more, or a
// person arms or disarms them.
func (w *sim) trigger(evs []func()) []func() {
	spec := w.specs["d-wf0"]
	if spec == nil || spec.On == nil {
		return evs
	}
	do := func(ev Event) { evs = append(evs, func() { w.handle(&told{ev: ev}) }) }
	switch k := w.g.IntN(24); {
	case k < 6:
		if a := w.st.Armed[spec.ID]; a == nil || !a.On || k == 0 {
			do(ArmRequested{Workflow: spec.ID, Digest: spec.Digest, By: Actor{Who: "person"}})
		}
	case k < 10:
		w.offered++
		do(Fired{Workflow: spec.ID, Trigger: pick(w.g, OnFiles, OnIssue), Key: fmt.Sprint("k", w.offered-w.g.IntN(3)), Trusted: k == 6})
	case k == 10:
		do(DisarmRequested{Workflow: spec.ID, By: Actor{Who: "person"}})
	}
	return evs
}

// fire carries out what a firing owes: the run to start, or why there is none now.
func (w *sim) fire(e Effect) Event {
	if w.p(0.2) {
		return FiringHeld{Workflow: e.Armed, Why: pick(w.g, "its spec has changed", "its spec is gone")}
	}
	digest := w.st.Armed[e.Armed].Digest
	return FiringRead{Workflow: e.Armed, Trigger: e.Trigger, Key: e.Firing.Key, Armed: digest, Run: RunRequested{Digest: digest}}
}
