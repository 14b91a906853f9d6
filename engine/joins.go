package engine

import "slices"

// view is the law of joins applied to each step of a run (8-semantics 7-9), by the step's place in
// the file.
type view struct {
	of                   []standing
	active, pending, due int // how many
}

// standing is the law of joins applied to a step.
type standing struct {
	active, pending, due, blocked bool
	below                         bool // something upstream of it is active
}

// led reports whether something that stands leads to the step.
func (r *Run) led(w *Spec, id string) bool {
	if w.Step(id).starts || w.Step(id).byNeed {
		return true
	}
	if _, ok := r.Sent[id]; ok {
		return true
	}
	return slices.ContainsFunc(w.graph.order, func(u string) bool {
		a := r.Current(u)
		return a.stands() && slices.Contains(a.To, id)
	})
}

// follows returns the steps whose attempts follow from the step's: where its pass leads, where its
// work was actually sent, and so on from there. Edges that were not taken do not count.
func (r *Run) follows(w *Spec, step string) map[string]bool {
	in := map[string]bool{}
	for queue := []string{step}; len(queue) > 0; queue = queue[1:] {
		next := w.graph.pass[queue[0]]
		if a := r.Current(queue[0]); a.stands() {
			next = slices.Concat(next, a.To)
		}
		for _, t := range next {
			if !in[t] && !IsEnd(t) {
				in[t] = true
				queue = append(queue, t)
			}
		}
	}
	return in
}

// stands reports whether the attempt is settled and its targets count.
func (a *Attempt) stands() bool {
	return a != nil && (a.State == Passed || a.State == Routed || a.State == Skipped)
}

// usualSteps is the workflow size up to which a view is drawn without heap allocation.
const usualSteps = 32

// look draws a separate view.
func (r *Run) look(w *Spec) *view {
	v := new(view)
	v.draw(r, w)
	return v
}

// draw redraws the view.
func (v *view) draw(r *Run, w *Spec) {
	of := slices.Grow(v.of[:0], len(w.Steps))[:len(w.Steps)]
	clear(of)
	*v = view{of: of}
	now := append(make([]*Attempt, 0, usualSteps), make([]*Attempt, len(w.Steps))...)
	led := append(make([]bool, 0, usualSteps), make([]bool, len(w.Steps))...)
	for i, st := range w.Steps {
		now[i] = r.Current(st.ID)
		_, sent := r.Sent[st.ID]
		led[i] = led[i] || sent || st.starts || st.byNeed
		if now[i].stands() {
			for _, t := range now[i].To {
				if to := w.Step(t); to != nil {
					led[to.place] = true
				}
			}
		}
	}
	for _, st := range w.graph.topo {
		x := &v.of[st.place]
		if now[st.place].Live() {
			x.active = true
			v.active++
		} else if now[st.place] == nil && led[st.place] {
			v.drawPending(st, now)
		}
		if x.active {
			for _, t := range st.below {
				v.of[t].below = true
			}
		}
	}
}

// steps returns the active steps.
func (v *view) steps(w *Spec) (out []string) {
	for i, st := range w.Steps {
		if v.of[i].active {
			out = append(out, st.ID)
		}
	}
	return out
}

// drawPending draws a step that is led to and has no current attempt.
func (v *view) drawPending(st *Step, now []*Attempt) {
	x := &v.of[st.place]
	met, dead := true, false
	for _, n := range st.needs {
		if !now[n].Done() {
			met = false
			if !v.of[n].active && !v.of[n].below {
				dead = true
			}
		}
	}
	if st.byNeed && dead {
		return // not reached: it blocks nothing
	}
	x.active, x.pending = true, true
	v.active++
	v.pending++
	switch {
	case x.below:
	case met:
		x.due = true
		v.due++
	case dead:
		x.blocked = true
	}
}
