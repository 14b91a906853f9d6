package engine

import (
	"maps"
)

// send moves the work of g's step to the target: back, which undoes what is downstream, or
// elsewhere.
func (d *judging) send(r *Run, w *Spec, g *Gate, f failure) {
	why := g.ID + ": " + f.outcome
	switch {
	case f.target == EndFailed, f.target == EndAborted:
		d.end(r, RunEnded{Phase: endPhase(f.target), Step: g.Step, Why: why, By: f.by})
	case f.target != EndDone && w.leadsBack(f.target, g.Step):
		d.listBack(r, w, g, f)
		d.undo(r, w, f.target, g.Step, false, why)
		if !r.led(w, f.target) {
			d.put(WorkSent{of: Of(r.ID), Step: f.target, From: g.Step})
		}
	default:
		d.undo(r, w, g.Step, "", true, why)
		d.put(StepRouted{of: Of(r.ID), Step: g.Step, N: r.Current(g.Step).N, To: f.target})
		if !IsEnd(f.target) { // an earlier route may have led there, or to a successor
			d.undo(r, w, f.target, "", false, why)
		}
	}
}

// listBack records that a gate sends the list's work back.
func (d *judging) listBack(r *Run, w *Spec, g *Gate, f failure) {
	st := w.List()
	if st == nil || r.List == nil || r.List.To != "" || r.Current(st.ID) == nil ||
		f.target != st.ID && !r.follows(w, f.target)[st.ID] {
		return
	}
	out := ListSentBack{of: Of(r.ID), Gate: g.ID, Feedback: f.feedback}
	if qs := r.Rounds[g.ID]; len(qs) > 0 {
		out.Words = reviewWords(g, qs[len(qs)-1], f.feedback)
	}
	d.put(out)
}

// undo supersedes root (unless keep) with its successors, origin with its successors, and the
// fixing steps that any of these requested. It resets the counts of gates strictly upstream of
// origin that must pass again (8-semantics 15, 17).
func (d *judging) undo(r *Run, w *Spec, root, origin string, keep bool, why string) {
	in := map[string]bool{root: true}
	grow := func(id string) {
		in[id] = true
		maps.Copy(in, r.follows(w, id))
	}
	feeds := func(t string) bool { return t == root || r.follows(w, t)[root] }
	grow(root)
	if origin != "" {
		grow(origin)
	}
	for more := true; more; {
		more = false
		for _, t := range w.graph.order {
			from, sent := r.Sent[t]
			if !sent || feeds(t) { // the predecessors of root stay
				continue
			}
			if in[from] && from != root || in[t] {
				more = true
				d.put(WorkUnsent{of: Of(r.ID), Step: t})
				grow(t)
			}
		}
	}
	if st := w.List(); st != nil && r.List != nil && in[st.ID] && !(keep && st.ID == root) {
		if t := r.List.To; t != "" && !feeds(t) { // the reason for the list's visit is undone
			d.put(ListUnsent{of: Of(r.ID)})
		}
	}
	for _, st := range w.graph.topo {
		id := st.ID
		if !in[id] || keep && id == root {
			continue
		}
		if a := r.Current(id); a != nil {
			d.put(StepSuperseded{of: Of(r.ID), Step: id, N: a.N, Why: why})
		}
		if origin != "" && w.graph.down[id][origin] {
			d.reset(r, st)
		}
	}
}

// reset sets the step's gate counts to 0, including routes.
func (d *judging) reset(r *Run, st *Step) {
	for _, g := range st.Gates {
		if r.Fails[g] > 0 || len(r.Routes[g]) > 0 || r.Exhausted[g] {
			d.put(CountReset{of: Of(r.ID), Gate: g})
		}
	}
}
