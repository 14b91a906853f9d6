package oracle

func (s *State) openGate(r *Run, step string, i int) {
	g := r.Spec.Gates[r.Spec.Steps[step].Gates[i]]
	level := g.Level
	if r.Forced[g.ID] {
		level = "human"
	}
	q := s.openRound(r, step, g.ID, level)
	if i > 0 {
		return
	}
	switch r.Cur(step).Status {
	case "failed":
		s.verdict(r, g, q, "fail", "criterion")
	case "blocked":
		s.ask(r, g, q, false)
	}
}

func (s *State) verdict(r *Run, g *Gate, q *Round, what, by string) {
	switch {
	case what == "pass" && by != "human" && q.Level == "notify":
		q.State = "notice"
	case what == "pass":
		s.pass(r, g, q, by)
	case what == "esc":
		s.ask(r, g, q, false)
	case what == "inconclusive":
		if q.Launch > 1 {
			s.ask(r, g, q, false)
		}
	default:
		target := g.OnFail
		if t, ok := g.Routes[what]; ok && what != "fail" {
			target = t
		}
		s.fail(r, g, q, what, target, by)
	}
}

func (r *Run) back(g *Gate, target string) bool {
	return target == g.Step || !isEnd(target) && r.Spec.down[target][g.Step]
}

func (s *State) fail(r *Run, g *Gate, q *Round, what, target, by string) {
	kind := g.ID // failures are one count, each route back by its name is another
	_, named := g.Routes[what]
	if named {
		kind = Route(g.ID, what)
	}
	if kind == g.ID || r.back(g, target) {
		if q.counted == "" {
			r.Fails[kind]++
			q.counted = kind
		}
		if r.Fails[q.counted] >= g.M && by != "human" {
			exh := g.OnExh
			if (g.Level == "human" || r.Forced[g.ID]) && exh != "fail" && exh != "abort" {
				exh = "human"
			}
			if r.Spec.Steps[exh] != nil && r.Exh[g.ID] {
				exh = "human"
			}
			switch exh {
			case "human":
				s.ask(r, g, q, true)
				return
			case "pass":
				s.pass(r, g, q, "exhausted")
				return
			case "fail":
				s.end(r, "failed", g.Step, "exhausted")
				return
			case "abort":
				s.end(r, "aborted", g.Step, "exhausted")
				return
			}
			r.Exh[g.ID], r.Renews[g.ID] = true, exh
			if exh == g.Step {
				r.renew(exh)
			}
			target = exh
		}
	}
	if q.counted != "" {
		kind = q.counted
	}
	if by == "human" && r.Fails[kind] >= g.M && g.Level != "human" && target != "FAILED" && target != "ABORTED" {
		r.Forced[g.ID] = true // this failure was a person's; whatever comes to the gate from here on is one's too
	}
	if q.State, q.By = "failed", by; named {
		q.State = "routed"
	}
	s.send(r, g, target)
}

// send takes the work of g's step to target: back (what is downstream is undone) or elsewhere.
func (s *State) send(r *Run, g *Gate, target string) {
	switch {
	case target == "FAILED":
		s.end(r, "failed", g.Step, g.ID)
	case target == "ABORTED":
		s.end(r, "aborted", g.Step, g.ID)
	case !r.back(g, target):
		s.undo(r, g.Step, "", true)
		a := r.Cur(g.Step)
		a.State, a.To = "routed", []string{target}
		for _, id := range r.Spec.Steps[g.Step].Gates {
			if q := r.CurRound(id); open(q) {
				q.State = "superseded"
			}
		}
		if !isEnd(target) {
			s.undo(r, target, "", false)
		}
	default:
		s.undo(r, target, g.Step, false)
		if !s.led(r, target) {
			r.Sent[target] = g.Step
		}
	}
}

// after marks what comes of a step: where its passes lead, who needs it, and where its work was routed.
func (r *Run) after(step string, in map[string]bool) {
	next := append([]string{}, r.Spec.sure[step]...)
	if a := r.Cur(step); a != nil && a.State == "routed" {
		next = append(next, a.To...)
	}
	for _, t := range next {
		if !isEnd(t) && !in[t] {
			in[t] = true
			r.after(t, in)
		}
	}
}

func (r *Run) comesTo(step, root string) bool {
	in := map[string]bool{}
	r.after(step, in)
	return in[root]
}

// undo un-passes root (unless keep) and all that comes of it, and the fixing steps that were asked for by what is
// undone.
func (s *State) undo(r *Run, root, origin string, keep bool) {
	w := r.Spec
	in := map[string]bool{root: true}
	r.after(root, in)
	if origin != "" {
		in[origin] = true
		r.after(origin, in)
	}
	for more := true; more; {
		more = false
		for _, t := range w.Order {
			o, ok := r.Sent[t]
			if !ok || t == root || r.comesTo(t, root) { // what feeds root stands
				continue
			}
			if in[o] && o != root || in[t] {
				more = true
				delete(r.Sent, t)
				in[t] = true
				r.after(t, in)
			}
		}
	}
	for _, id := range w.topo() {
		if !in[id] || keep && id == root {
			continue
		}
		if r.Cur(id) != nil {
			s.supersede(r, id)
		}
		if origin != "" && w.down[id][origin] { // strictly upstream of the gate that sent it back
			s.reset(r, id)
		}
	}
}

func (s *State) reset(r *Run, step string) {
	for _, g := range r.Spec.Steps[step].Gates {
		r.anew(g)
		r.Exh[g] = false
	}
}

// anew sets all counts of a gate to 0.
func (r *Run) anew(gate string) {
	delete(r.Renews, gate)
	delete(r.Fails, gate)
	for name := range r.Spec.Gates[gate].Routes {
		delete(r.Fails, Route(gate, name))
	}
}

// renew begins the counts anew of the gates whose on_exhausted led to the step, which has passed.
func (r *Run) renew(step string) {
	for gate, to := range r.Renews {
		if to == step {
			r.anew(gate)
		}
	}
}

// Route is where the count of a gate's route is.
func Route(gate, name string) string { return gate + "/" + name }

func (s *State) pass(r *Run, g *Gate, q *Round, by string) {
	q.State, q.By = "passed", by
	for i, id := range r.Spec.Steps[g.Step].Gates {
		if id == g.ID && i+1 < len(r.Spec.Steps[g.Step].Gates) {
			s.openGate(r, g.Step, i+1)
			return
		}
	}
	a := r.Cur(g.Step)
	a.State, a.To = "passed", g.OnPass
	r.renew(g.Step)
	s.ends(r, g.Step, g.OnPass)
}

func (s *State) ends(r *Run, step string, to []string) {
	for _, t := range to {
		if t == "FAILED" {
			s.end(r, "failed", step, "on_pass")
		} else if t == "ABORTED" {
			s.end(r, "aborted", step, "on_pass")
		}
	}
}
