package engine

import (
	"fmt"
	"strings"
)

// stopTakeover is the stop reason after a person's takeover.
const stopTakeover = "takeover"

// viaHandback is the prefix of Via when a person reported the step done by handing it back.
const viaHandback = "handback by "

// held reports whether a person has taken the attempt over and its process is gone.
func (a *Attempt) held() bool { return a != nil && a.Held != nil && a.State == Ready }

// note records a person's words for the agents of a run.
func (d *steering) note(ev NoteGiven) {
	r := d.s.Runs[ev.Run]
	why := notLive(r, ev.Run)
	switch {
	case why != "":
	case strings.TrimSpace(ev.Text) == "":
		why = "the note is empty"
	case len(ev.Text) > MaxNote:
		why = fmt.Sprintf("the note has more than %d KiB: write it into a file, and name that", MaxNote>>10)
	case len(r.Notes) >= MaxNotes:
		why = fmt.Sprintf("run %s has %d notes, the maximum", r.ID, MaxNotes)
	case ev.Step != "":
		if w := d.spec(r); w == nil || w.Step(ev.Step) == nil {
			why = fmt.Sprintf("run %s has no step %s", r.ID, ev.Step)
		}
	}
	if why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	d.keepNote(r, ev.Step, ev.Text, ev.By)
}

func (d *steering) keepNote(r *Run, step, text string, by Actor) {
	d.put(NoteTaken{of: Of(r.ID), N: len(r.Notes) + 1, Step: step, Text: strings.TrimSpace(text), By: by})
}

// takeover holds a step for a person and stops its agent.
func (d *steering) takeover(ev TakeoverRequested) {
	r := d.s.Runs[ev.Run]
	why := notLive(r, ev.Run)
	if why == "" {
		why = d.notTaken(r, d.spec(r), ev.Step)
	}
	if why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	a := r.Current(ev.Step)
	d.put(StepHeld{of: Of(r.ID), Step: ev.Step, N: a.N, By: ev.By})
	switch {
	case a.State != Running:
	case r.Procs.Of(a.Key) != nil:
		d.put(StopOrdered{of: Of(r.ID), Key: a.Key, Why: stopTakeover})
	default: // the process ended without its signal
		d.letGo(r, a)
	}
}

// notTaken returns why the step cannot be taken over now, or "".
func (d *steering) notTaken(r *Run, w *Spec, step string) string {
	if w == nil {
		return fmt.Sprintf("run %s cannot go on: the spec it was started with cannot be read by this release", r.ID)
	}
	st, a := w.Step(step), r.Current(step)
	switch {
	case st == nil:
		return fmt.Sprintf("run %s has no step %s", r.ID, step)
	case st.Run != nil:
		return fmt.Sprintf("step %s is a command: there is no agent to take over from", step)
	case r.Offers(st):
		return fmt.Sprintf("step %s is not launched by sluice, but on offer: sluice next --claim", step)
	case !a.Live():
		return fmt.Sprintf("step %s of %s is not at work", step, r.ID)
	case a.Reads:
		return fmt.Sprintf("step %s only reads (reads: true), in a temporary checkout: there is nothing to take over: "+
			"sluice note %s %s leaves it a message", step, r.ID, step)
	case a.Held != nil:
		return fmt.Sprintf("%s.%d of %s is taken over already, by %s", step, a.N, r.ID, a.Held.Who)
	case a.State != Ready && a.State != Running:
		return fmt.Sprintf("%s.%d of %s has already reported (%s): sluice retry %s %s has it done again", step,
			a.N, r.ID, a.State, r.ID, step)
	case a.K == 0:
		return fmt.Sprintf("%s.%d of %s has not been launched yet", step, a.N, r.ID)
	}
	if o := &d.s.index.trees; a.State == Ready {
		if d.occupy(o); o.holds[a.Tree].r != nil {
			return fmt.Sprintf("%s.%d of %s waits for its worktree, which is in use", step, a.N, r.ID)
		}
	}
	return ""
}

// letGo leaves the attempt, whose process is gone, to the person who took it over.
func (d *steering) letGo(r *Run, a *Attempt) {
	d.put(StepRelaunched{of: Of(r.ID), Step: a.step, N: a.N, Class: stopTakeover, Why: "taken over by " + a.Held.Who})
}

// handback returns a taken-over step to an agent, or accepts the person's report that it is done.
func (d *steering) handback(ev HandbackRequested) {
	r := d.s.Runs[ev.Run]
	why := notLive(r, ev.Run)
	if why == "" {
		why = d.notHeld(r, ev)
	}
	if why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	a, st := r.Current(ev.Step), d.spec(r).Step(ev.Step)
	d.put(StepHandedBack{of: Of(r.ID), Step: ev.Step, N: a.N, Done: ev.Done, By: ev.By})
	if !ev.Done {
		if strings.TrimSpace(ev.Text) != "" {
			d.keepNote(r, ev.Step, ev.Text, ev.By)
		}
		return
	}
	// A step is done only by the report of its live launch: this launch is the person's.
	d.put(StepLaunched{of: Of(r.ID), Step: ev.Step, N: a.N, K: a.K + 1,
		Key: launchKey(r.ID, ev.Step, a.N, a.K+1), Tree: a.Tree, Offered: true, Person: true,
		SignalType: st.Signal.Type, SignalValue: st.Signal.Value})
	d.signalled(StepSignalled{of: Of(r.ID), Step: ev.Step, N: a.N, K: a.K, Status: StatusDone,
		Via: viaHandback + ev.By.Who, Summary: strings.TrimSpace(ev.Text)})
}

// notHeld returns why the step cannot be handed back now, or "".
func (d *steering) notHeld(r *Run, ev HandbackRequested) string {
	a := r.Current(ev.Step)
	switch {
	case d.spec(r) == nil:
		return fmt.Sprintf("run %s cannot go on: the spec it was started with cannot be read by this release", r.ID)
	case a == nil || a.Held == nil:
		return fmt.Sprintf("step %s of %s is not taken over", ev.Step, r.ID)
	case a.State != Ready:
		return fmt.Sprintf("the agent of %s.%d is being stopped: try again in a moment", ev.Step, a.N)
	case len(ev.Text) > MaxNote:
		return fmt.Sprintf("the text has more than %d KiB: write it into a file, and name that", MaxNote>>10)
	case !ev.Done && strings.TrimSpace(ev.Text) != "" && len(r.Notes) >= MaxNotes:
		return fmt.Sprintf("run %s has %d notes, the maximum", r.ID, MaxNotes)
	}
	return ""
}
