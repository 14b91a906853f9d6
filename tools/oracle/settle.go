package oracle

import (
	"cmp"
	"slices"
)

// led: something that stands leads to the step.
func (s *State) led(r *Run, id string) bool {
	w := r.Spec
	if w.start[id] || w.nonly[id] {
		return true
	}
	if _, ok := r.Sent[id]; ok {
		return true
	}
	for _, u := range w.Order {
		if a := r.Cur(u); a != nil && (a.State == "passed" || a.State == "routed" || a.State == "skipped") {
			if slices.Contains(a.To, id) {
				return true
			}
		}
	}
	return false
}

type view struct{ active, pending, due, blocked, up map[string]bool }

func (s *State) view(r *Run) view {
	w := r.Spec
	v := view{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, id := range w.topo() {
		st := w.Steps[id]
		if live(r.Cur(id)) {
			v.active[id] = true
		} else if r.Cur(id) == nil && s.led(r, id) {
			met, dead := true, false
			for _, n := range st.Needs {
				if !passed(r.Cur(n)) {
					met = false
					if !v.active[n] && !v.up[n] {
						dead = true
					}
				}
			}
			if !w.nonly[id] || !dead {
				v.active[id], v.pending[id] = true, true
				switch {
				case met && !v.up[id] && (st.Ext == "" || s.Ext[st.Ext]):
					v.due[id] = true
				case dead && !v.up[id]:
					v.blocked[id] = true
				}
			}
		}
		if v.active[id] {
			for t := range w.down[id] {
				v.up[t] = true
			}
		}
	}
	return v
}

func (s *State) settle() {
	for n := 0; ; n++ {
		must(n < 10000, "settle does not end")
		before := s.Seq
		for _, r := range s.Runs {
			s.advance(r)
		}
		s.schedule()
		if s.Seq == before {
			return
		}
	}
}

func (s *State) advance(r *Run) {
	if r.Phase != "running" {
		return
	}
	w, v := r.Spec, s.view(r)
	for _, id := range w.Order {
		if v.due[id] && !r.Paused {
			s.Seq++
			s.start(r, id)
			return
		}
	}
	if len(v.due) > 0 {
		return
	}
	if len(v.active) > 0 && len(v.active) == len(v.pending) && s.onlyBlocked(r, v) { // nothing lives but what can never start
		for _, id := range w.Order {
			if v.blocked[id] {
				s.Seq++
				s.end(r, "failed", id, "a step was led to whose needs can no longer be met")
				return
			}
		}
	}
	if len(v.active) > 0 || s.Withheld(r.ID, "", "") {
		return
	}
	for _, k := range s.Order {
		if s.Procs[k].Run == r.ID {
			return
		}
	}
	s.Seq++
	s.end(r, "completed", "", "")
}

func (s *State) start(r *Run, id string) {
	w, n := r.Spec, len(r.Att[id])+1
	if w.Steps[id].When && w.Skip(id, n) {
		to := w.Gates[w.Steps[id].Gates[len(w.Steps[id].Gates)-1]].OnPass
		r.Att[id] = append(r.Att[id], &Attempt{N: n, State: "skipped", To: to})
		r.renew(id)
		s.ends(r, id, to)
		return
	}
	if r.Allowance == 0 || r.Begun < r.Allowance {
		s.startStep(r, id)
		return
	}
	if w.LimitHuman {
		r.Paused, r.Why = true, "limit"
	} else {
		s.end(r, "aborted", id, "limit")
	}
}

// onlyBlocked: no pending step that nothing upstream holds up still waits for another workflow.
func (s *State) onlyBlocked(r *Run, v view) bool {
	for id := range v.pending {
		st := r.Spec.Steps[id]
		if st.Ext != "" && !s.Ext[st.Ext] && !v.blocked[id] && !v.up[id] {
			return false
		}
	}
	return true
}

type candidate struct {
	seq        int
	wt         string
	r          *Run
	step, gate string
}

// keeps: no person and no window came between the launch of the attempt and this round, so its tree was never let go.
func (r *Run) keeps(st *Step, q *Round) bool {
	for _, g := range st.Gates {
		for _, o := range r.Rounds[g] {
			if o != q && o.Attempt == q.Attempt && (o.State != "passed" || o.Level != "auto") {
				return false
			}
		}
	}
	return true
}

// outlived: a process of the step's, or of the gate's, is not gone yet.
func (s *State) outlived(c candidate) bool {
	for _, p := range s.Procs {
		if p.Run == c.r.ID && p.Step == c.r.Spec.stepOf(c) && p.Gate == c.gate {
			return true
		}
	}
	return false
}

func (w *Spec) stepOf(c candidate) string {
	if c.gate != "" {
		return w.Gates[c.gate].Step
	}
	return c.step
}

// schedule starts what is ready, oldest first; who cannot have its worktree does not hold up others.
func (s *State) schedule() {
	var cs []candidate
	holds, next, kept := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, k := range s.Order {
		holds[s.Procs[k].WT] = true
	}
	for _, r := range s.Runs {
		if r.Phase != "running" {
			continue
		}
		for _, id := range r.Spec.Order {
			st, a := r.Spec.Steps[id], r.Cur(id)
			if a != nil && a.State == "ready" && !r.Paused && !s.Withheld(r.ID, id, "") {
				cs = append(cs, candidate{a.due, st.works(), r, id, ""})
			}
			for _, g := range st.Gates {
				q := r.CurRound(g)
				if q == nil || q.State != "reviewing" {
					continue
				}
				if r.keeps(st, q) && st.works() != "" { // also while its reviewers look at what was taken of it
					kept[st.WT] = g
				}
				if s.Procs[ReviewKey(r.ID, g, q.N, q.Launch)] != nil {
					continue
				}
				if st.reviewed(a) != "" {
					next[st.WT] = true // the tree waits for its review: no step slips in between
				}
				if !r.Paused && !s.Withheld(r.ID, id, g) {
					cs = append(cs, candidate{a.due, st.reviewed(a), r, id, g})
				}
			}
		}
	}
	slices.SortStableFunc(cs, func(x, y candidate) int { return cmp.Compare(x.seq, y.seq) })
	for _, c := range cs {
		if c.wt != "" && (holds[c.wt] || kept[c.wt] != "" && kept[c.wt] != c.gate || c.gate == "" && next[c.wt]) {
			continue
		}
		if c.wt == "" && s.outlived(c) {
			continue
		}
		if holds[c.wt] = true; c.gate != "" {
			s.review(c.r, c.gate)
		} else {
			s.launch(c.r, c.step)
		}
	}
}
