package engine

import (
	"time"
)

// count adds a process's cost beyond what is already counted. A reported cost is never taken back.
func (s *State) count(r *Run, p *Proc, u Usage, day string) {
	more := u.above(p.Usage)
	if more == (Usage{}) {
		return
	}
	p.Usage = p.Usage.Plus(more)
	for o := r; o != nil; o = s.Parent(o) {
		o.Usage = o.Usage.Plus(more)
		o.spend(p.Role, Spend{Usage: more})
	}
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
	s.Today.turnTo(day)
	s.Today.Usage = s.Today.Usage.Plus(Spend{Usage: more})
}

// spend adds to what a role has used in the run. An empty role is not counted.
func (r *roles) spend(role string, more Spend) {
	if role != "" && more != (Spend{}) {
		set(&r.Roles, role, r.Roles[role].Plus(more))
	}
}

// countEnd counts an agent's launch that has ended, and its running time. A launch that never started does not count.
func (s *State) countEnd(r *Run, p *Proc, f ProcessGone, at time.Time) {
	switch ran := Duration(p.ran(at)); {
	case p.Role == "":
	case f.Exit.NotStarted != "" || f.Exit.Refused != "":
		for o := r; o != nil; o = s.Parent(o) {
			o.spend(p.Role, Spend{Launches: -1})
		}
	default:
		for o := r; o != nil; o = s.Parent(o) {
			o.spend(p.Role, Spend{Time: ran})
		}
		if f.Day != "" {
			s.Today.turnTo(f.Day)
			s.Today.Usage = s.Today.Usage.Plus(Spend{Launches: 1, Time: ran})
		}
	}
}

// since returns when the process got its slot and began to run.
func (p *Proc) since() time.Time { return later(p.Began, p.From) }

// ran returns how long the process has run, without its wait for a slot.
func (p *Proc) ran(at time.Time) time.Duration {
	if p.Waits {
		return 0
	}
	return max(at.Sub(p.since()), 0)
}

// turnTo resets the counts when the day changes.
func (d *Day) turnTo(day string) {
	if d.Day != day {
		*d = Day{Day: day}
	}
}

func (f UsageCounted) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	s.count(r, r.Procs.alive(f.Run, f.Key, "the cost"), f.Usage, f.Day)
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
	s.Today.turnTo(f.Day)
	set(&s.Today.Told, f.Mark(), true)
}

// Spent is a used signed answer.
type Spent struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // when to forget it
}
