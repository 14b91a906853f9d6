package oracle

// Event is what the world told the model.
type Event struct {
	K          string // start, signal, gone, review, noticed, expired, human, pause, resume, abort, retry, ext
	Run        int
	Step, Gate string
	N, Launch  int
	Status     string // signal: done, failed, blocked; gone: ok, crash; review: pass, fail, inconclusive, esc or a route; human: pass, fail, veto
	Key        string
	Written    int
	On         bool
	Spec       *Spec
}

// Handle takes the events in as if they were one, and draws what follows.
func Handle(s *State, evs ...Event) {
	for _, ev := range evs {
		s.react(ev)
	}
	s.settle()
}

func (s *State) run(i int) *Run {
	if i < 1 || i > len(s.Runs) {
		return nil
	}
	return s.Runs[i-1]
}

func (s *State) react(ev Event) {
	s.Seq++
	r := s.run(ev.Run)
	if ev.K == "start" {
		s.startRun(ev.Spec)
		return
	}
	if ev.K == "ext" {
		s.Ext[ev.Key] = ev.On
		return
	}
	if ev.K == "gone" {
		s.gone(ev)
		return
	}
	if ev.K == "retry" {
		s.retry(r, ev.Step)
		return
	}
	if r == nil || r.Phase != "running" {
		return
	}
	switch ev.K {
	case "signal":
		s.signal(r, ev)
	case "review":
		if q := r.roundN(ev.Gate, ev.N); q != nil && q.State == "reviewing" && q.Launch == ev.Launch {
			s.verdict(r, r.Spec.Gates[ev.Gate], q, ev.Status, "reviewer")
		}
	case "noticed":
		if q := r.roundN(ev.Gate, ev.N); q != nil && q.State == "notice" {
			q.State = "window"
		}
	case "expired":
		if q := r.roundN(ev.Gate, ev.N); q != nil && q.State == "window" && !r.Paused {
			s.pass(r, r.Spec.Gates[ev.Gate], q, "window")
		}
	case "human":
		s.human(r, ev)
	case "pause":
		if !r.Paused {
			r.Paused, r.Why = true, "user"
		}
	case "resume":
		if r.Paused && r.Why == "limit" {
			r.Allowance += r.Spec.MaxSteps
		}
		r.Paused = false
	case "abort":
		s.end(r, "aborted", "", "human")
	}
}

func (r *Run) roundN(gate string, n int) *Round {
	if q := r.CurRound(gate); q != nil && q.N == n {
		return q
	}
	return nil
}

func (s *State) signal(r *Run, ev Event) {
	a := r.Cur(ev.Step)
	if a == nil || a.State != "running" {
		return
	}
	if ev.N != 0 && (ev.N != a.N || ev.Launch != a.Launch) || ev.N == 0 && ev.Written < a.launched {
		return
	}
	a.State, a.Status = "signalled", ev.Status
}

func (s *State) gone(ev Event) {
	p := s.Procs[ev.Key]
	if p == nil {
		return
	}
	s.drop(p.Key)
	r := s.run(p.Run)
	if r.Phase != "running" {
		return
	}
	if p.Gate != "" {
		if q := r.roundN(p.Gate, p.N); q != nil && q.State == "reviewing" && q.Launch == p.Launch {
			s.verdict(r, r.Spec.Gates[p.Gate], q, "inconclusive", "reviewer") // gone without a verdict
		}
		return
	}
	a := r.Cur(p.Step)
	if a == nil || a.N != p.N || a.Launch != p.Launch {
		return
	}
	switch {
	case a.State == "signalled":
		a.Taken = true
		s.openGate(r, p.Step, 0)
	case a.State == "running" && ev.Status == "ok": // no signal: a failure of the work
		a.Taken = true
		a.State, a.Status = "signalled", "failed"
		s.openGate(r, p.Step, 0)
	case a.State == "running" && a.Launch <= r.Spec.Steps[p.Step].Retries:
		a.State = "ready"
	case a.State == "running":
		a.State, a.Status = "signalled", "blocked"
		s.openGate(r, p.Step, 0)
	}
}

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

func (s *State) human(r *Run, ev Event) {
	g, q := r.Spec.Gates[ev.Gate], r.CurRound(ev.Gate)
	if g == nil || q == nil || ev.N != 0 && ev.N != q.N || ev.N == 0 && ev.Written < q.opened {
		return
	}
	switch {
	case ev.Status == "pass":
		if q.State == "human" {
			s.pass(r, g, q, "human")
		}
	case open(q) || ev.Status == "veto" && q.State == "passed":
		s.fail(r, g, q, "fail", g.OnFail, "human")
	}
}

func (s *State) retry(r *Run, step string) {
	if r == nil {
		return
	}
	if step == "" && len(r.Att[r.EndStep]) > 0 {
		step = r.EndStep
	}
	if step != "" && (r.Spec.Steps[step] == nil || len(r.Att[step]) == 0) {
		return // not reached
	}
	if r.Phase == "running" && (step == "" || r.Cur(step) == nil) || r.Phase == "completed" && step == "" {
		return // it runs, or will run by itself
	}
	if r.Phase != "running" {
		if r.Why == "limit" {
			r.Allowance += r.Spec.MaxSteps
		}
		r.Phase, r.EndStep, r.Why = "running", "", ""
	}
	if step == "" {
		return
	}
	if r.Cur(step) != nil {
		s.undo(r, step, "", false)
	}
	for _, id := range r.Spec.Order { // a person looked at it: the counts below start again
		if id == step || r.Spec.down[step][id] {
			s.reset(r, id)
		}
	}
}
