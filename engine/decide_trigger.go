package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// PausedConfirm is the PausedWhy of a run that a trigger started and that waits for a person before
// its first step.
const PausedConfirm = "confirm"

// ViaTrigger marks runs that a trigger started.
const ViaTrigger = "trigger"

// reactTrigger handles what concerns triggers; it reports whether the event does.
func (d *triggering) reactTrigger(ev Event) bool {
	switch ev := ev.(type) {
	case ArmRequested:
		d.arm(ev)
	case DisarmRequested:
		d.disarm(ev)
	case Fired:
		if why := d.fired(ev); why != "" && ev.By.Via != "" {
			d.ignore("", ev.EventKind(), why, &ev.By)
		}
	case FiringRead:
		d.firingRead(ev)
	case FiringHeld:
		d.firingHeld(ev)
	default:
		return false
	}
	return true
}

// arm lets the triggers of a workflow fire by this spec. What a schedule missed before does not
// fire, and no minute that was decided on is decided on again.
func (d *triggering) arm(ev ArmRequested) {
	w, old := d.specs(ev.Digest), d.s.Armed[ev.Workflow]
	why := ""
	switch {
	case w == nil || w.ID != ev.Workflow:
		why = fmt.Sprintf("workflow %s: its spec cannot be loaded", ev.Workflow)
	case w.On == nil:
		why = fmt.Sprintf("workflow %s has no triggers: give its spec `on:`", ev.Workflow)
	case old == nil && len(d.s.Armed) >= MaxArmed:
		why = fmt.Sprintf("the triggers of %d workflows are armed in this repo, the maximum", MaxArmed)
	case len(ev.Known) > MaxKeys:
		why = fmt.Sprintf("more than %d files or branches are there already: narrow its globs", MaxKeys)
	}
	if why != "" {
		d.ignore("", ev.EventKind(), why, &ev.By)
		return
	}
	f := TriggersArmed{Workflow: ev.Workflow, Digest: ev.Digest, Source: ev.Source, By: ev.By}
	from := d.at
	if old != nil {
		for _, t := range old.Turns {
			from = later(from, t.Through)
		}
	}
	for _, t := range w.On.Triggers {
		if t.Kind == OnSchedule {
			set(&f.Next, t.ID, Turn{Through: from, Next: t.Next(from)})
		}
	}
	for _, k := range ev.Known {
		if t := w.On.Trigger(k.Trigger); t != nil && t.Kind != OnSchedule {
			f.Known.add(t.ID, k.Key)
			if i := strings.LastIndexByte(k.Key, '@'); t.Kind == OnPush && i >= 0 && len(f.Tips) < MaxTips {
				set(&f.Tips, k.Key[:i], k.Key[i+1:])
			}
		}
	}
	d.put(f)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (d *triggering) disarm(ev DisarmRequested) {
	a := d.s.Armed[ev.Workflow]
	if a == nil || !a.On {
		d.ignore("", ev.EventKind(), fmt.Sprintf("the triggers of %s are not armed", ev.Workflow), &ev.By)
		return
	}
	d.dropFirings(ev.Workflow, a, "its triggers were disarmed")
	d.put(TriggersDisarmed(ev))
}

// dropFirings records that the waiting firings start no run.
func (d *triggering) dropFirings(workflow string, a *Armed, why string) {
	for _, f := range slices.Clone(a.Firings) {
		d.dropFiring(workflow, a, f, why)
	}
}

func (d *triggering) dropFiring(workflow string, a *Armed, f *Firing, why string) {
	one := TriggerSkipped{Workflow: workflow, Trigger: f.Trigger, ID: f.ID, Key: f.Key, Why: clip(why, MaxFeedback)}
	if t, ok := a.Turns[f.ID]; ok { // of a schedule
		one.Turn = &t
	}
	d.put(one)
}

// fired takes a firing in. It returns why it does not count, if anybody waits for the answer.
func (d *triggering) fired(ev Fired) string {
	a := d.s.Armed[ev.Workflow]
	if a == nil || !a.On || ev.Armed != 0 && ev.Armed != a.Seq {
		return fmt.Sprintf("the triggers of %s are not armed: sluice triggers arm %s", ev.Workflow, ev.Workflow)
	}
	w := d.specs(a.Digest)
	if w == nil || w.On == nil {
		return fmt.Sprintf("the spec that the triggers of %s were armed with cannot be read by this release: sluice "+
			"triggers arm %s", ev.Workflow, ev.Workflow)
	}
	t := w.On.Trigger(ev.Trigger)
	switch {
	case t == nil || t.Kind == OnSchedule: // the clock is ours
		return fmt.Sprintf("workflow %s has no trigger %s that can be fired", ev.Workflow, ev.Trigger)
	case ev.Key == "" || len(ev.Key) > MaxKey:
		return fmt.Sprintf("a key has 1 to %d bytes", MaxKey)
	case a.Known.Has(t.ID, ev.Key):
		return ""
	case ev.Skip != "":
		d.put(happening{t: t, key: ev.Key}.skipped(w, ev.Skip))
		return ""
	}
	return d.accept(a, w, happening{t: t, key: ev.Key, values: ev.Values, trusted: ev.Trusted})
}

// happening is a firing that is new.
type happening struct {
	t       *Trigger
	key     string
	values  map[string]any
	trusted bool
	turn    *Turn // of a schedule
}

func (f happening) skipped(w *Spec, why string) TriggerSkipped {
	return TriggerSkipped{Workflow: w.ID, Trigger: f.t.Name, ID: f.t.ID, Key: f.key, Why: clip(why, MaxFeedback),
		Turn: f.turn}
}

// accept decides whether a new firing starts a run. Where it is not taken in, its key stays new: it
// may come again when there is room. A schedule's minute does not come again.
func (d *triggering) accept(a *Armed, w *Spec, f happening) string {
	if full := d.room(a, w); full != "" {
		if f.turn != nil {
			d.put(f.skipped(w, full))
		}
		return full
	}
	var live []*Run
	if flow := d.s.index.workflows[w.ID]; flow != nil {
		live = slices.DeleteFunc(slices.Clone(flow.live), func(r *Run) bool { return unconfirmed(r) })
	}
	switch {
	case w.On.Overlap == OverlapSkip && len(live) > 0:
		d.put(f.skipped(w, "overlap: skip, and "+live[0].ID+" is live"))
		return ""
	case w.On.Overlap == OverlapSkip && len(a.Firings) > 0:
		d.put(f.skipped(w, "overlap: skip, and "+a.Firings[0].Key+" starts a run"))
		return ""
	}
	vars, err := w.FiringVars(f.t, f.values)
	if err == nil {
		if _, why := startVars(w, vars); why != "" {
			err = fmt.Errorf("%s", why)
		}
	}
	if err != nil {
		d.put(f.skipped(w, err.Error()))
		d.tellTrigger(w.ID, "vars",
			fmt.Sprintf("the trigger %s of %s started no run for %s: %v", f.t.Name, w.ID, f.key, err))
		return ""
	}
	if w.On.Overlap == OverlapReplace && confirms(w, f) == "" {
		why := "overlap: replace, and " + f.t.Name + " fired again: " + f.key
		d.dropFirings(w.ID, a, why)
		for _, r := range live {
			if r.By.Via == ViaTrigger {
				d.end(r, RunEnded{Phase: RunAborted, Why: clip(why, MaxFeedback)})
			}
		}
	}
	d.put(TriggerFired{Workflow: w.ID, Turn: f.turn, Firing: Firing{Trigger: f.t.Name, ID: f.t.ID, Key: f.key, At: d.at,
		Vars: vars, Confirm: confirms(w, f)}})
	return ""
}

// confirms returns why a person is asked before the run's first step; "" if nobody is.
func confirms(w *Spec, f happening) string {
	asks := f.t.Outside() && !f.trusted
	if w.On.Confirm != nil {
		asks = *w.On.Confirm
	}
	if !asks {
		return ""
	}
	return confirmWords(f.t.Name, f.key)
}

func confirmWords(trigger, key string) string { return fmt.Sprintf("%s %s started it", trigger, key) }

// room returns why the workflow takes no firing in now, and tells a person when that begins.
func (d *triggering) room(a *Armed, w *Spec) string {
	most, full := w.On.MaxPerDay, a.Full
	switch {
	case full != "":
	case a.today(d.at) >= most:
		full = FullDay
	case len(a.Firings) >= MaxFirings:
		full = FullQueue
	case len(a.Known) >= MaxKeys:
		full = FullMemory
	default:
		return ""
	}
	words := map[string]string{
		FullDay: fmt.Sprintf("%s has started %d runs within 24 hours, its max_per_day: what else fires is taken in "+
			"when these are over", w.ID, most),
		FullQueue: fmt.Sprintf("%d firings of %s wait for their runs: what else fires is taken in when these have begun",
			MaxFirings, w.ID),
		FullMemory: fmt.Sprintf("%s has fired for %d things and remembers no more: give the workflow a new id", w.ID,
			MaxKeys),
	}[full]
	if a.Full == "" {
		d.put(TriggersFull{Workflow: w.ID, Why: full})
		d.tellTrigger(w.ID, full, words)
	}
	return words
}

// tellTrigger owes a notice about a workflow's triggers.
func (d *triggering) tellTrigger(workflow, what, text string) {
	d.notice(Notice{ID: fmt.Sprintf("triggers-%s-%s-%d", workflow, what, d.s.Clock), Kind: NoticeInfo,
		Text: clip(text, 2000)})
}

// firingRead starts the run of a firing. What was read before another text was armed is read again.
func (d *triggering) firingRead(ev FiringRead) {
	a, w := d.s.Armed[ev.Workflow], d.specs(ev.Run.Digest)
	f := a.firing(ev.Trigger, ev.Key)
	if f == nil || ev.Armed != a.Digest || w == nil || w.ID != ev.Workflow {
		return
	}
	ev.Run.Workflow, ev.Run.Vars = w.ID, f.Vars
	ev.Run.By = Actor{Who: f.Trigger, Via: ViaTrigger}
	ev.Run.Parallel = w.On != nil && w.On.Overlap == OverlapParallel
	ev.Run.Fired = &FiredBy{Trigger: f.Trigger, Key: f.Key}
	confirm := f.Confirm
	if confirm == "" && w.On != nil && w.On.Confirm != nil && *w.On.Confirm { // armed anew since it fired
		confirm = confirmWords(f.Trigger, f.Key)
	}
	id, why := d.startRun(w, ev.Run)
	switch {
	case why != "":
		d.dropFiring(w.ID, a, f, why)
		d.tellTrigger(w.ID, "start",
			fmt.Sprintf("the trigger %s of %s started no run for %s: %s", f.Trigger, w.ID, f.Key, why))
	case confirm != "":
		d.stopFor(d.s.Runs[id], PausedConfirm, confirm+" and it waits for your word: look at sluice status "+id+
			"; sluice resume "+id+" lets it begin, sluice abort "+id+" ends it")
	}
	if a.Full == FullQueue && len(a.Firings) == 0 {
		d.put(TriggersOpened{Workflow: w.ID})
	}
}

func (d *triggering) firingHeld(ev FiringHeld) {
	a := d.s.Armed[ev.Workflow]
	if a == nil || !a.On || a.Held == ev.Why {
		return
	}
	d.put(TriggersHeld(ev))
	d.tellTrigger(ev.Workflow, "held",
		fmt.Sprintf("the triggers of %s have fired and start no run: %s", ev.Workflow, ev.Why))
}
