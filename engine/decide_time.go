package engine

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// scanned handles a full scan of the inboxes that began at ev.Began: what waited for a file ends without it.
func (d *running) scanned(ev Scanned) {
	for _, r := range slices.Clone(d.s.index.closing) {
		w := d.spec(r)
		if w == nil {
			continue
		}
		for _, a := range slices.Clone(w.inOrder(r.alive)) {
			if a.inGrace() && !a.inGit() && passed(a.GraceUntil, ev.Began) {
				d.graceOver(r, a.step, a)
			}
			if q := r.roundOver(a); q != nil && q.State == OnWindow && !r.Paused && passed(q.WindowEnds, ev.Began) {
				d.pass(r, w.Gate(q.gate), q, "window", "")
			}
		}
	}
}

// polled handles a look through the refs. Only one begun after the grace proves that a commit has not come.
func (d *running) polled(ev Polled) {
	r, _ := d.live(ev.Run)
	if r == nil {
		return
	}
	a := r.Current(ev.Step)
	if a != nil && a.N == ev.N && a.K == ev.K && a.inGrace() && a.inGit() && passed(a.GraceUntil, ev.Began) {
		d.graceOver(r, ev.Step, a)
	}
}

// inGrace reports whether the attempt's process exited with 0 and its signal may still come.
func (a *Attempt) inGrace() bool { return a.State == Running && !a.GraceUntil.IsZero() }

// inGit reports whether the attempt's signal is expected in git or at the forge, not in an inbox.
func (a *Attempt) inGit() bool { return a.SignalType == SignalCommit || a.SignalType == SignalPull }

// passed reports whether the deadline is set and has passed.
func passed(deadline, now time.Time) bool { return !deadline.IsZero() && !deadline.After(now) }

// ticked handles the passing of time.
func (d *running) ticked() {
	for _, r := range slices.Clone(d.s.index.afoot) {
		if !r.Live() {
			d.tickProcs(r) // its after_run
			continue
		}
		w := d.spec(r)
		if w == nil || r.Phase != RunRunning {
			continue
		}
		if l := r.List; l != nil && d.writeDue(l) {
			d.again.add(r)
		}
		d.tickProcs(r)
		for _, a := range slices.Clone(w.inOrder(r.alive)) {
			if a.Offered && a.State == Running && passed(a.Deadline, d.at) {
				d.signalled(StepSignalled{of: Of(r.ID), Step: a.step, N: a.N, K: a.K, Status: StatusFailed, Via: "timeout",
					Failure: "nobody signalled within the step's timeout"})
			} else if a.inGrace() && a.inGit() && passed(a.Deadline, d.at) { // git could not be read the whole time
				d.graceOver(r, a.step, a)
			}
			if q := r.roundOver(a); q != nil && q.State == OnHuman && r.Live() && !r.Paused {
				d.tickHuman(r, w.Gate(q.gate), q)
			}
		}
		if r.Live() && r.TimeLimit > 0 && !r.Paused && r.spent(d.at) >= time.Duration(r.TimeLimit) {
			d.limit(r, w, "max_duration", "")
		} else if r.Live() && !r.Paused && !d.overRoles(r, w) {
			d.nearTime(r)
			d.nearLimits(r)
		}
	}
	d.tickTriggers()
}

func (d *running) tickProcs(r *Run) {
	for _, p := range append([]*Proc{}, r.Procs...) {
		if p.Stop != "" || !r.wanted(p) {
			continue
		}
		at, why := p.Deadline, "timeout" // of a check or hook
		if of := r.clock(p.Key); of != nil {
			at = *of
		} else if p.Kind == ProcStep {
			at, why = r.Current(p.Step).LingerUntil, "linger"
		}
		if passed(at, d.at) {
			d.put(StopOrdered{of: Of(r.ID), Key: p.Key, Why: why})
		}
	}
}

// tickHuman reminds the person that a gate waits for, and applies its on_timeout.
func (d *running) tickHuman(r *Run, g *Gate, q *Round) {
	due := passed(q.Due, d.at)
	if due && g.OnTimeout != "" && g.OnTimeout != "remind" {
		switch g.OnTimeout {
		case OutcomeFail:
			d.fail(r, g, q, failure{outcome: OutcomeFail, target: g.OnFail, byKind: "timeout",
				feedback: "no person answered within " + g.Timeout.String()})
		default:
			d.end(r, RunEnded{Phase: endPhase(g.OnTimeout), Step: g.Step,
				Why: g.ID + ": no person answered within " + g.Timeout.String()})
		}
		return
	}
	if !due && !passed(q.RemindAt, d.at) {
		return
	}
	f := Reminded{of: Of(r.ID), Gate: g.ID, N: q.N, Due: q.Due}
	if due {
		f.Due = d.at.Add(time.Duration(g.Timeout))
	}
	if d.s.Config.Remind > 0 { // reminders grow apart
		f.NextAt = d.at.Add(min(time.Duration(d.s.Config.Remind)<<min(q.Reminders+1, 5), 24*time.Hour))
	}
	d.put(f)
	d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.remind-%d", r.ID, g.ID, q.N, q.Reminders), Kind: NoticeReminder,
		Run: r.ID, Step: g.Step, Gate: g.ID, N: q.N, Text: q.Why})
}

// woken handles a gap in which sluice was away. Deadlines that passed in it are extended once
// (8-semantics 36). A new epoch opens each open veto window again.
func (d *running) woken(ev Woken) {
	gap := ev.To.Sub(ev.From)
	for _, r := range slices.Clone(d.s.index.afoot) {
		if ev.Offset != 0 {
			d.put(ClockShifted{of: Of(r.ID), By: ev.Offset})
		}
		if gap > GapAllowed {
			if len(r.Procs) > 0 || !r.BusySince.IsZero() {
				d.put(TimeLost{of: Of(r.ID), By: Duration(gap)})
			}
			for _, p := range slices.Clone(r.Procs) { // a check's or a hook's
				if !p.Reopened && within(p.Deadline, ev) {
					d.put(DeadlineMoved{of: Of(r.ID), Key: p.Key, N: p.N, To: p.Deadline.Add(gap), Why: gapWords(gap)})
				}
			}
		}
		w := d.spec(r)
		if w == nil || !r.Live() {
			continue
		}
		d.again.add(r)
		if r.Phase != RunRunning {
			continue
		}
		for _, a := range slices.Clone(w.inOrder(r.alive)) {
			if a.State == Running && !a.Reopened && gap > GapAllowed && within(a.Deadline, ev) {
				d.put(DeadlineMoved{of: Of(r.ID), Step: a.step, N: a.N, To: a.Deadline.Add(gap), Why: gapWords(gap)})
			}
			switch q := r.roundOver(a); {
			case q == nil:
			case ev.Epoch > 0 && q.State == OnWindow && !r.Paused:
				d.openAgain(r, q, ev, "another machine decides since epoch "+strconv.FormatInt(ev.Epoch, 10))
			case !q.Reopened && gap > GapAllowed:
				d.wokenRound(r, q.gate, q, ev, gap)
			}
		}
	}
}

// openAgain has a veto window last for a while from now on, with a new notice.
func (d *running) openAgain(r *Run, q *Round, ev Woken, why string) {
	to := ev.To.Add(min(time.Duration(q.VetoWindow), GapAllowed))
	if !to.After(q.WindowEnds) {
		return
	}
	d.put(DeadlineMoved{of: Of(r.ID), Gate: q.gate, N: q.N, To: to, Why: why})
	d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.again-%d", r.ID, q.gate, q.N, ev.Epoch), Kind: NoticeReminder, Run: r.ID,
		Step: q.Step, Gate: q.gate, N: q.N, Text: "the veto window is open again: " + why, Until: to})
}

func (d *running) wokenRound(r *Run, gate string, q *Round, ev Woken, gap time.Duration) {
	f := DeadlineMoved{of: Of(r.ID), Gate: gate, N: q.N, Why: gapWords(gap)}
	switch {
	case q.State == OnWindow && !r.Paused && within(q.WindowEnds, ev):
		d.openAgain(r, q, ev, f.Why)
	case q.State == OnReview && within(q.Deadline, ev):
		f.To = q.Deadline.Add(gap)
		d.put(f)
	case q.State == OnHuman && !r.Paused && within(q.Due, ev):
		f.To = ev.To.Add(ReopenHuman)
		d.put(f)
		d.notice(Notice{ID: fmt.Sprintf("%s/%s#%d.again", r.ID, gate, q.N), Kind: NoticeReminder, Run: r.ID, Step: q.Step,
			Gate: gate, N: q.N,
			Text: "the time for an answer passed while sluice was away and was extended", Until: f.To})
	}
}

func within(deadline time.Time, ev Woken) bool {
	return !deadline.IsZero() && deadline.After(ev.From) && !deadline.After(ev.To)
}

func gapWords(gap time.Duration) string {
	return "sluice was away for " + gap.Round(time.Second).String()
}
