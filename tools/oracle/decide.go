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
	File       bool // human: not by a command
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

func (s *State) human(r *Run, ev Event) {
	g, q := r.Spec.Gates[ev.Gate], r.CurRound(ev.Gate)
	if g == nil || q == nil || ev.N != 0 && ev.N != q.N {
		return
	}
	switch {
	case ev.N == 0 && ev.Written < q.opened: // a veto, perhaps: no window closes over it
		if ev.File && ev.Status != "pass" && (q.State == "notice" || q.State == "window") {
			s.ask(r, g, q, false)
		}
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
