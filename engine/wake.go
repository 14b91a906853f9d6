package engine

import (
	"container/heap"
	"time"
)

// Wake returns the earliest moment later than after at which time alone changes something; zero for
// never. Earlier moments were handled by the Ticked decided then.
func (s *State) Wake(after time.Time) time.Time {
	m := soonest{after: after, at: s.index.wakeRuns(after)}
	for _, a := range s.Armed {
		a.moment(&m)
	}
	return m.at
}

// wakeRuns is Wake for the runs.
func (x *index) wakeRuns(after time.Time) time.Time {
	if after.Before(x.woke) { // the clock was set back: earlier moments come again
		for _, r := range x.afoot {
			x.wakes.set(r, r.nextMoment(after))
		}
	}
	x.woke = after
	for _, r := range x.untimed {
		r.in.untimed = false
		x.wakes.set(r, r.nextMoment(after))
	}
	x.untimed = x.untimed[:0]
	for {
		r := x.wakes.first()
		if r == nil {
			return time.Time{}
		}
		if r.next.After(after) {
			return r.next
		}
		x.wakes.set(r, r.nextMoment(after))
	}
}

// soonest is the earliest moment seen that is later than after.
type soonest struct{ after, at time.Time }

func (m *soonest) see(t time.Time) {
	if t.After(m.after) && (m.at.IsZero() || t.Before(m.at)) {
		m.at = t
	}
}

// nextMoment returns the earliest moment later than after at which time alone changes something in the run.
func (r *Run) nextMoment(after time.Time) time.Time {
	m := soonest{after: after}
	for _, p := range r.Procs {
		if p.Stop == "" && !p.Deadline.IsZero() && r.wanted(p) {
			m.see(p.Deadline)
		}
	}
	if r.Phase != RunRunning {
		return m.at
	}
	if l := r.List; l != nil && l.Dirty && l.Writing == 0 && l.File == FileOK {
		m.see(l.Wrote.Add(time.Duration(WriteEvery)))
	}
	for _, a := range r.alive {
		a.moments(&m, r.Procs.Of(a.Key), r.Paused)
	}
	for _, q := range r.open {
		q.moments(&m, r.Procs.Of(q.Key), r.Paused)
	}
	if r.TimeLimit > 0 && !r.BusySince.IsZero() {
		m.see(r.BusySince.Add(time.Duration(r.TimeLimit - r.Spent)))
		if r.Near["max_duration"] != r.TimeLimit.String() {
			m.see(r.BusySince.Add(nearMoment(r.TimeLimit) - time.Duration(r.Spent)))
		}
	}
	if !r.Paused {
		r.roleMoments(&m)
	}
	return m.at
}

// roleMoments sees the moments at which the agents of a role reach their total time limit, or come near it.
func (r *Run) roleMoments(m *soonest) {
	for role, limit := range r.RoleLimits {
		if limit.Time == 0 {
			continue
		}
		var first time.Time
		// sum over the others of how much later than the first they began
		n, later := time.Duration(0), time.Duration(0)
		for _, p := range r.playing(role) {
			if p.Waits {
				continue
			}
			if n++; n == 1 {
				first = p.since()
			}
			later += p.since().Sub(first)
		}
		if n == 0 {
			continue
		}
		used := time.Duration(r.Roles[role].Time)
		at := func(limit time.Duration) { m.see(first.Add((limit - used + later + n - 1) / n)) }
		at(time.Duration(limit.Time))
		if r.Near[roleLimit(role, maxDuration)] != limit.Time.String() {
			at(nearMoment(limit.Time))
		}
	}
}

// moments shows m the moments of an attempt; p is its process, or nil.
func (a *Attempt) moments(m *soonest, p *Proc, paused bool) {
	switch a.State {
	case Ready:
		if !paused && a.Held == nil {
			m.see(a.NotBefore)
		}
	case Running:
		if p == nil || p.Stop == "" {
			m.see(a.Deadline)
		}
		m.see(a.GraceUntil)
	case Signalled:
		if p != nil && p.Stop == "" {
			m.see(a.LingerUntil)
		}
	}
}

// moments shows m the moments of a round; p is its process, or nil.
func (q *Round) moments(m *soonest, p *Proc, paused bool) {
	switch q.State {
	case OnReview:
		if p != nil && p.Stop == "" {
			m.see(q.Deadline)
		} else if p == nil && !paused {
			m.see(q.NotBefore)
		}
	case OnWindow:
		if !paused {
			m.see(q.WindowEnds)
		}
	case OnHuman:
		if !paused {
			m.see(q.Due)
			m.see(q.RemindAt)
		}
	}
}

// NeedsScan reports whether a deadline up to at is closed by a scan of the inboxes (Scanned), not by the clock alone.
func (s *State) NeedsScan(at time.Time) bool {
	for _, r := range s.index.closing {
		if r.PausedWhy == pausedSpec { // no scan closes what cannot be read
			continue
		}
		for _, a := range r.alive {
			if a.inGrace() && !a.inGit() && passed(a.GraceUntil, at) {
				return true
			}
		}
		for _, q := range r.open {
			if q.State == OnWindow && !r.Paused && passed(q.WindowEnds, at) {
				return true
			}
		}
	}
	return false
}

// wakes is a heap of runs by their next moments. A run whose moment moved later is re-sorted only
// when it reaches the root: most runs move again before that.
type wakes []*Run

// Len, Less, Swap, Push and Pop are the heap's; a run has no moment before by.
func (h wakes) Len() int           { return len(h) }
func (h wakes) Less(i, k int) bool { return h[i].by.Before(h[k].by) }

func (h wakes) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].slot, h[k].slot = i+1, k+1
}

func (h *wakes) Push(r any) {
	*h = append(*h, r.(*Run))
	(*h)[len(*h)-1].slot = len(*h)
}

func (h *wakes) Pop() any {
	end := len(*h) - 1
	r := (*h)[end]
	(*h)[end], r.slot = nil, 0
	*h = (*h)[:end]
	return r
}

// set records the run's next moment, zero for none.
func (h *wakes) set(r *Run, next time.Time) {
	r.next = next
	switch {
	case next.IsZero():
	case r.slot == 0:
		r.by = next
		heap.Push(h, r)
	case next.Before(r.by):
		r.by = next
		heap.Fix(h, r.slot-1)
	}
}

// first returns the run with the earliest moment, or nil.
func (h *wakes) first() *Run {
	for len(*h) > 0 {
		switch r := (*h)[0]; {
		case r.next.IsZero():
			h.drop(r)
		case r.next.After(r.by):
			r.by = r.next
			heap.Fix(h, 0)
		default:
			return r
		}
	}
	return nil
}

// drop removes the run.
func (h *wakes) drop(r *Run) {
	if r.slot > 0 {
		heap.Remove(h, r.slot-1)
	}
}
