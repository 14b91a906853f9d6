package engine

import "time"

// count adds what a process has cost beyond what is counted of it. What a program once told is not taken back.
func (s *State) count(r *Run, p *Proc, u Usage, day string) {
	more := u.above(p.Usage)
	if more == (Usage{}) {
		return
	}
	p.Usage = p.Usage.Plus(more)
	r.Usage = r.Usage.Plus(more)
	switch p.Kind {
	case ProcStep:
		if a := r.Attempt(p.Step, p.N); a != nil {
			a.Usage = a.Usage.Plus(more)
		}
	case ProcReview:
		if qs := r.Rounds[p.Gate]; p.N >= 1 && p.N <= len(qs) {
			qs[p.N-1].Usage = qs[p.N-1].Usage.Plus(more)
		}
	}
	if day == "" {
		return
	}
	s.turnTo(day)
	s.Today.Usage = s.Today.Usage.Plus(more)
}

// turnTo begins another day.
func (s *State) turnTo(day string) {
	if s.Today.Day != day {
		s.Today = Day{Day: day}
	}
}

func (f UsageCounted) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	p := r.Proc(f.Key)
	if p == nil {
		wrong("%s: the cost of %s, which is not alive", f.Run, f.Key)
	}
	s.count(r, p, f.Usage, f.Day)
}

func (f BudgetNeared) apply(s *State, _ time.Time) { set(&s.at(f.Run).Near, f.Budget, f.Limit) }

func (f BudgetLifted) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	for _, a := range r.alive {
		if a.BudgetWait != "" {
			a.NotBefore, a.LimitWait, a.BudgetWait = time.Time{}, false, ""
		}
	}
	for _, q := range r.open {
		if q.BudgetWait != "" {
			q.NotBefore, q.LimitWait, q.BudgetWait = time.Time{}, false, ""
		}
	}
}

func (f DayBudgetNeared) apply(s *State, _ time.Time) {
	s.turnTo(f.Day)
	set(&s.Today.Told, f.Mark(), true)
}

func (f NoteTaken) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.Notes = append(r.Notes, Note{N: f.N, At: at, Step: f.Step, Text: f.Text, By: f.By})
}

func (f StepHeld) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N)
	if a.State != Ready && a.State != Running {
		wrong("%s: takeover of %s.%d in state %s", f.Run, f.Step, f.N, a.State)
	}
	by := f.By
	a.Held = &by
}

func (f StepHandedBack) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N)
	if a.Held == nil || a.State != Ready {
		wrong("%s: %s.%d is handed back in state %s", f.Run, f.Step, f.N, a.State)
	}
	a.Held = nil
}

// heldUp says that the attempt waits for a person: it is taken over, or its worktree's is.
func (r *Run) heldUp(a *Attempt) bool {
	if a.State != Ready {
		return false
	}
	for _, o := range r.alive {
		if o.held() && o.Tree == a.Tree {
			return true
		}
	}
	return false
}
