package engine

import (
	"slices"
	"time"
)

func (f NeedsMet) apply(s *State, _ time.Time) { set(&s.at(f.Run).Met, f.Step, f.Pins) }

func (f StepStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	if r.Current(f.Step) != nil || f.N != len(r.Attempts[f.Step])+1 {
		wrong("%s: second current attempt of %s", f.Run, f.Step)
	}
	a := &Attempt{N: f.N, Worktree: f.Worktree, Tree: f.Tree, Since: s.Clock, Pins: f.Pins, Started: at, step: f.Step,
		Children: f.Children, List: f.List, Reads: f.Reads}
	r.Attempts[f.Step], r.alive = append(r.Attempts[f.Step], a), append(r.alive, a)
	if f.Children { // its work begins with the first child
		a.to(f.Run, f.FactKind(), Running)
		a.Launched = at
	} else {
		a.to(f.Run, f.FactKind(), Ready)
	}
	if !f.List {
		r.Begun++
	}
	delete(r.Met, f.Step)
}

func (f StepSkipped) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	if r.Current(f.Step) != nil || f.N != len(r.Attempts[f.Step])+1 {
		wrong("%s: skip of %s", f.Run, f.Step)
	}
	a := &Attempt{N: f.N, To: f.To, Since: s.Clock, Started: at, Ended: at, step: f.Step}
	a.to(f.Run, f.FactKind(), Skipped)
	r.Attempts[f.Step] = append(r.Attempts[f.Step], a)
	delete(r.Met, f.Step)
}

func (f StepLaunched) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	a := r.now(f.Step, f.N).to(f.Run, f.FactKind(), Running)
	if f.K != a.K+1 {
		wrong("%s: launch %d of %s.%d in state %s", f.Run, f.K, f.Step, f.N, a.State)
	}
	if f.K == 1 {
		r.Turns++
		a.Turn = r.Turns
	}
	a.K, a.Key, a.Offered, a.Tree = f.K, f.Key, f.Offered, f.Tree
	a.Launched, a.Deadline, a.SignalType, a.SignalValue = at, f.Deadline, f.SignalType, f.SignalValue
	a.NotBefore, a.LimitWait, a.BudgetWait, a.GraceUntil, a.Reopened, a.Exit = time.Time{}, false, "", time.Time{},
		false, nil
	if !f.Offered {
		s.begin(r, &Proc{Key: f.Key, Kind: ProcStep, Step: f.Step, N: f.N, K: f.K, Tree: a.Holds(), Began: at, Role: f.Role})
	}
	if f.Role != "" || f.Offered {
		mayLeave(s, r, a)
	}
}

func (s *State) begin(r *Run, p *Proc) {
	if r.Procs.Of(p.Key) != nil {
		wrong("%s: process %s twice", r.ID, p.Key)
	}
	r.Procs = append(r.Procs, p)
	for o := r; o != nil; o = s.Parent(o) {
		o.spend(p.Role, Spend{Launches: 1})
	}
}

func (f GraceBegan) apply(s *State, _ time.Time) {
	s.at(f.Run).now(f.Step, f.N).may(f.Run, f.FactKind()).GraceUntil = f.Until
}

func (f StepSignalled) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).to(f.Run, f.FactKind(), Signalled)
	if a.K != f.K {
		wrong("%s: a signal of launch %d of %s.%d, which is at launch %d", f.Run, f.K, f.Step, f.N, a.K)
	}
	a.Status, a.Via, a.Author, a.Summary, a.Question, a.Options = f.Status, f.Via, f.Author, f.Summary, f.Question,
		f.Options
	a.LingerUntil, a.GraceUntil, a.Failure, a.Broken, a.Held = f.LingerUntil, time.Time{}, f.Failure, f.Broken, nil
	a.did(f.Makers...)
	if len(f.Answer) > 0 {
		a.Answer = f.Answer
	}
}

func (f StopOrdered) apply(s *State, _ time.Time) {
	s.at(f.Run).Procs.alive(f.Run, f.Key, "a stop").Stop = f.Why
}

func (f DeadlineMoved) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	if f.Key != "" {
		p := r.Procs.alive(f.Run, f.Key, "a deadline")
		p.Deadline, p.Reopened = f.To, true
		return
	}
	if f.Step != "" {
		a := r.now(f.Step, f.N).may(f.Run, f.FactKind())
		a.Deadline, a.Reopened = f.To, true
		return
	}
	q := r.round(f.Gate, f.N).may(f.Run, f.FactKind())
	q.Reopened = true
	switch q.State {
	case OnWindow:
		q.WindowEnds = f.To
	case OnReview:
		q.Deadline = f.To
	default:
		q.Due = f.To
	}
}

func (f ProcessGone) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	p := r.Procs.alive(f.Run, f.Key, "the end")
	r.Procs = slices.DeleteFunc(r.Procs, func(x *Proc) bool { return x == p })
	s.count(r, p, f.Exit.Usage, f.Day)
	s.countEnd(r, p, f, at)
	if a := r.Attempt(p.Step, p.N); p.Kind == ProcStep && a != nil {
		exit := f.Exit
		a.Exit, a.Output = &exit, f.Output
		if len(f.Answer) > 0 {
			a.Answer = f.Answer
		}
	}
}

func (f StepRelaunched) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).to(f.Run, f.FactKind(), Ready)
	a.NotBefore, a.LimitWait, a.BudgetWait = f.NotBefore, f.Limit, f.Budget
	switch f.Class {
	case ClassInfrastructure:
		a.Restarts++
	case ClassLimit:
		a.Waits++
	}
}

func (f WorkLost) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).to(f.Run, f.FactKind(), Ready)
	a.NotBefore, a.Restarts, a.LingerUntil, a.Hooked = f.NotBefore, a.Restarts+1, time.Time{}, false
	a.Status, a.Via, a.Author, a.Summary, a.Question, a.Options, a.Failure = "", "", "", "", "", nil, ""
	a.Answer, a.Output = nil, ""
}

func (f CheckStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.now(f.Step, f.N).may(f.Run, f.FactKind())
	s.begin(r, &Proc{Key: f.Key, Kind: ProcCheck, Step: f.Step, N: f.N, Tree: f.Tree, Began: at, Deadline: f.Deadline})
}

func (f Checked) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	a := r.now(f.Step, f.N).may(f.Run, f.FactKind())
	a.Checked, a.Digest, a.Content, a.Protected = true, f.Digest, f.Content, f.Protected
	a.ProtectedAs, a.ProtectedBy, a.ToReview, a.Unshipped, a.Apart = f.ProtectedAs, f.ProtectedBy, f.ToReview,
		f.Unshipped, f.Apart
	if !f.OK && a.Status == StatusDone {
		a.Failure = f.Why
	}
	if f.Broken != "" {
		a.Broken = f.Broken
	}
	if f.Digest != "" {
		leaves(s, r, a)
	}
}

func (f HookStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	s.begin(r, &Proc{Key: f.Key, Kind: ProcHook, Step: f.Step, N: f.N, Tree: f.Tree, Began: at, Deadline: f.Deadline})
	if f.Step == "" {
		r.Hooked = true
		return
	}
	r.now(f.Step, f.N).may(f.Run, f.FactKind()).Hooked = true
}

func (f StepClaimed) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).may(f.Run, f.FactKind())
	a.ClaimedBy = f.By.Who
	if f.By.Via != ViaMCP { // otherwise an orchestrating agent took it
		a.did(f.By.Who)
	}
}

func (f StepHeld) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).may(f.Run, f.FactKind())
	by := f.By
	a.Held = &by
	a.did(by.Who)
}

func (f StepHandedBack) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).may(f.Run, f.FactKind())
	if a.Held == nil {
		wrong("%s: %s.%d is handed back, and nobody has it", f.Run, f.Step, f.N)
	}
	a.Held = nil
	a.did(f.By.Who)
}

// heldUp reports whether the attempt waits because a person has taken over it or another attempt in its worktree.
func (x *runIndex) heldUp(a *Attempt) bool {
	return a.State == Ready && !a.Reads &&
		slices.ContainsFunc(x.alive, func(o *Attempt) bool { return o.held() && o.Tree == a.Tree })
}

func (f ClockHeld) apply(s *State, _ time.Time) {
	s.at(f.Run).setClock(f.Key, time.Time{})
	s.at(f.Run).Procs.Of(f.Key).Waits = true
}

func (f ClockBegun) apply(s *State, at time.Time) {
	s.at(f.Run).setClock(f.Key, f.Deadline)
	p := s.at(f.Run).Procs.Of(f.Key)
	p.Waits, p.From = false, at
}

func (r *Run) setClock(key string, to time.Time) {
	at := r.clock(key)
	if at == nil {
		wrong("%s: a deadline of %s, which is not at work", r.ID, key)
	}
	*at = to
}

func (f ClockShifted) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	times := []*time.Time{&r.PausedAt, &r.BusySince}
	for _, p := range r.Procs {
		times = append(times, &p.Began, &p.From, &p.Deadline)
	}
	for _, a := range r.alive {
		times = append(times, &a.Launched, &a.Deadline, &a.GraceUntil, &a.LingerUntil, &a.NotBefore)
	}
	for _, q := range r.open {
		times = append(times, &q.Opened, &q.NotBefore, &q.Deadline, &q.WindowEnds, &q.Asked, &q.Due, &q.RemindAt)
	}
	if r.List != nil {
		times = append(times, &r.List.Wrote)
	}
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(time.Duration(f.By))
		}
	}
}

func (f TimeLost) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	if !r.BusySince.IsZero() {
		r.Spent = max(r.Spent-f.By, 0)
	}
	for _, p := range r.Procs {
		p.From = p.since().Add(time.Duration(f.By))
	}
}

// clock returns the deadline of the step's or reviewer's process, or nil if it no longer works.
func (r *Run) clock(key string) *time.Time {
	p := r.Procs.Of(key)
	if p == nil || p.Stop != "" {
		return nil
	}
	switch p.Kind {
	case ProcStep:
		if a := r.Current(p.Step); a != nil && a.N == p.N && a.K == p.K && a.State == Running {
			return &a.Deadline
		}
	case ProcReview:
		if q := r.CurrentRound(p.Gate); q != nil && q.N == p.N && q.K == p.K && q.State == OnReview {
			return &q.Deadline
		}
	}
	return nil
}

func (f StepPassed) apply(s *State, at time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).to(f.Run, f.FactKind(), Passed)
	a.To, a.Ended = f.To, at
}

func (f StepRouted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	a := r.now(f.Step, f.N).to(f.Run, f.FactKind(), Routed)
	a.To, a.Ended = []string{f.To}, at
	for _, qs := range r.Rounds {
		if q := qs[len(qs)-1]; q.Step == f.Step && q.Attempt == f.N && q.Open() {
			q.to(f.Run, f.FactKind(), Undone)
			q.Ended = at
		}
	}
}

func (f StepSuperseded) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.Landing = false // the content to land will change
	r.Writes = slices.DeleteFunc(r.Writes,
		func(w *Write) bool { return w.Kind == WriteAdvance && w.Step == f.Step || w.Kind == WriteLand })
	r.now(f.Step, f.N)
	r.supersede(f.Step, f.FactKind(), at)
}

// supersede undoes the step's current attempt and its rounds.
func (r *Run) supersede(step, fact string, at time.Time) {
	a := r.Current(step)
	a.to(r.ID, fact, Superseded)
	if a.Ended.IsZero() {
		a.Ended = at
	}
	for _, qs := range r.Rounds {
		for _, q := range qs {
			if q.Step == step && q.Attempt == a.N && q.State != Undone {
				q.to(r.ID, fact, Undone)
			}
		}
	}
}

func (f WorkSent) apply(s *State, _ time.Time) { set(&s.at(f.Run).Sent, f.Step, f.From) }

func (f WorkUnsent) apply(s *State, _ time.Time) { delete(s.at(f.Run).Sent, f.Step) }
