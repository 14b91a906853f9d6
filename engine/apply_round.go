package engine

import (
	"maps"
	"slices"
	"time"
)

func (f RoundOpened) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.now(f.Step, f.Attempt).to(f.Run, f.FactKind(), Gating)
	if f.N != len(r.Rounds[f.Gate])+1 {
		wrong("%s: round %s#%d after %d", f.Run, f.Gate, f.N, len(r.Rounds[f.Gate]))
	}
	q := &Round{N: f.N, Step: f.Step, Attempt: f.Attempt, Level: f.Level,
		Opened: at, Seq: s.Clock, VetoWindow: f.VetoWindow, Trust: f.Trust, Digest: f.Digest, gate: f.Gate}
	q.to(f.Run, f.FactKind(), OnReview)
	r.Rounds[f.Gate], r.open = append(r.Rounds[f.Gate], q), append(r.open, q)
}

func (f ReviewStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).may(f.Run, f.FactKind())
	if f.K != q.K+1 {
		wrong("%s: review %d of %s#%d after %d", f.Run, f.K, f.Gate, f.N, q.K)
	}
	if f.K == 1 {
		r.Turns++
		q.Turn = r.Turns
	}
	q.K, q.Key, q.Deadline, q.NotBefore, q.LimitWait, q.BudgetWait = f.K, f.Key, f.Deadline, time.Time{}, false, ""
	s.begin(r, &Proc{Key: f.Key, Kind: ProcReview, Step: q.Step, Gate: f.Gate, N: f.N, K: f.K, Tree: f.Tree, Began: at,
		Role: f.Role, Forge: f.Forge})
}

func (f Judged) apply(s *State, _ time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N).may(f.Run, f.FactKind())
	q.Outcome, q.Score, q.Scores, q.Feedback, q.Findings, q.Answer, q.Read = f.Outcome, f.Score, f.Scores, f.Feedback,
		f.Findings, f.Answer, f.Read
}

func (f Inconclusive) apply(s *State, _ time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N).may(f.Run, f.FactKind())
	q.MissWhy, q.NotBefore, q.LimitWait, q.BudgetWait = f.Why, f.NotBefore, f.Limit, f.Budget
	if f.Limit {
		q.Waits++
	} else {
		q.Misses++
	}
}

func (f Agreed) apply(s *State, _ time.Time) {
	s.at(f.Run).round(f.Gate, f.N).to(f.Run, f.FactKind(), OnNotice)
}

func (f WindowOpened) apply(s *State, _ time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N).to(f.Run, f.FactKind(), OnWindow)
	q.WindowEnds = f.Until
}

func (f HumanAsked) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).to(f.Run, f.FactKind(), OnHuman)
	q.Level, q.Why, q.Protect, q.Asked, q.Due, q.RemindAt = LevelHuman, f.Why, f.Protect, at, f.Due, f.RemindAt
	q.WindowEnds, q.Remains = time.Time{}, 0
	if f.Forced {
		set(&r.Forced, f.Gate, true)
	}
}

func (f Reminded) apply(s *State, _ time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N).may(f.Run, f.FactKind())
	q.Reminders++
	q.RemindAt, q.Due = f.NextAt, f.Due
}

func (f SignatureUsed) apply(s *State, at time.Time) {
	maps.DeleteFunc(s.Spent, func(_ string, o Spent) bool { return o.Until.Before(at) })
	s.Spent[f.Nonce] = Spent{At: at, Until: f.Expires.Add(spentFor)}
}

// did records who contributed to an attempt.
func (a *Attempt) did(names ...string) {
	for _, n := range names {
		if n != "" && !slices.Contains(a.Doers, n) && len(a.Doers) < maxDoers {
			a.Doers = append(a.Doers, n)
		}
	}
}

// maxDoers limits the names kept per attempt.
const maxDoers = 50

func (f GateFailed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).may(f.Run, f.FactKind())
	if q.Counted {
		wrong("%s: failure of %s#%d counted twice", f.Run, f.Gate, f.N)
	}
	q.keepSaid(f.ByKind)
	q.Counted, q.Outcome = true, f.Outcome
	if f.Feedback != "" {
		q.Feedback = f.Feedback
	}
	set(&r.Fails, f.Gate, f.Count)
	delete(r.Same, f.Gate)
	if f.Same > 0 {
		set(&r.Same, f.Gate, &Sameness{Failure: f.Failure, Digest: f.Digest, Count: f.Same})
	}
}

func (f RouteCounted) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).may(f.Run, f.FactKind())
	if q.Counted {
		wrong("%s: route of %s#%d counted twice", f.Run, f.Gate, f.N)
	}
	q.keepSaid(f.ByKind)
	q.Counted, q.Outcome, q.Route, q.Times = true, f.Route, f.Route, f.Count
	if f.Feedback != "" {
		q.Feedback = f.Feedback
	}
	if r.Routes[f.Gate] == nil {
		set(&r.Routes, f.Gate, map[string]int{})
	}
	r.Routes[f.Gate][f.Route] = f.Count
}

// Count returns how often the gate took the route back, or how often it failed if route is "".
func (c *counts) Count(gate, route string) int {
	if route == "" {
		return c.Fails[gate]
	}
	return c.Routes[gate][route]
}

// keepSaid keeps the feedback of a failure when a person's words replace it. The feedback of a pass is not kept.
func (q *Round) keepSaid(byKind string) {
	if byKind == Human && q.ByKind != Human && q.State != Approved && q.Outcome != OutcomePass {
		q.Said = q.Feedback
	}
	q.ByKind = byKind // not read while a round is open
}

func (f RoundFailed) apply(s *State, at time.Time) { f.close(s, at, f.FactKind(), Refused) }

// close ends a round that did not pass.
func (f RoundFailed) close(s *State, at time.Time, fact, as string) *Round {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N)
	q.keepSaid(f.ByKind)
	// not the feedback of a pass, nor a reviewer's before a person's comments
	if f.Feedback != "" || q.State == Approved || len(f.Findings) > 0 {
		q.Feedback = f.Feedback
	}
	q.to(f.Run, fact, as)
	q.Outcome, q.Route, q.Times, q.ByKind, q.By, q.Ended = f.Outcome, "", 0, f.ByKind, f.By, at
	q.LetThrough, q.To, q.Comments, q.Veto = f.LetThrough, f.To, f.Findings, f.Veto
	if f.Forced {
		set(&r.Forced, f.Gate, true)
	}
	return q
}

func (f RoundRouted) apply(s *State, at time.Time) {
	q := RoundFailed(f).close(s, at, f.FactKind(), ByRoute)
	q.Route, q.Times = f.Outcome, f.Times
}

func (f RoundPassed) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).to(f.Run, f.FactKind(), Approved)
	q.ByKind, q.By, q.Ended = f.ByKind, f.By, at
	q.Outcome, q.LetThrough = OutcomePass, f.LetThrough
	if len(f.Answer) > 0 {
		q.Answer, q.Read = f.Answer, ""
	}
	if f.ByKind != byExhausted {
		q.Route, q.Times = "", 0
	}
	if f.Feedback != "" {
		q.Feedback = f.Feedback
	}
	if a := r.Attempt(q.Step, q.Attempt); a != nil && q.ByKind == Human && q.Protect {
		accept(s, a)
	}
}

func (f RoundVoided) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N).to(f.Run, f.FactKind(), Undone)
	q.Ended = at
	a := r.now(q.Step, q.Attempt)
	a.to(f.Run, f.FactKind(), Signalled)
	a.Checked, a.Hooked = false, true // the hook runs once per attempt
	if !slices.Contains(r.alive, a) {
		r.alive = append(r.alive, a)
	}
	if a.Status == StatusDone { // the step's own result stands; findings are collected again
		a.Failure, a.Broken = "", ""
	}
	for _, qs := range r.Rounds { // earlier gates of the same attempt approved the old content too
		for _, o := range qs {
			if o.Step == q.Step && o.Attempt == q.Attempt && o.State == Approved {
				o.to(f.Run, f.FactKind(), Undone)
			}
		}
	}
}

func (f ExhaustedTo) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	set(&r.Exhausted, f.Gate, true)
	if f.Renew {
		set(&r.Renews, f.Gate, f.To)
	} else {
		delete(r.Fails, f.Gate)
	}
}

func (f CountRenewed) apply(s *State, _ time.Time) { s.at(f.Run).countAnew(f.Gate) }

// countAnew resets all counts of the gate to 0.
func (c *counts) countAnew(gate string) {
	delete(c.Fails, gate)
	delete(c.Routes, gate)
	delete(c.Same, gate)
	delete(c.Renews, gate)
}

func (f CountReset) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.countAnew(f.Gate)
	delete(r.Exhausted, f.Gate)
}
