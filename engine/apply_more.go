package engine

import (
	"slices"
	"strconv"
	"strings"
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
	s.turnTo(day)
	s.Today.Usage = s.Today.Usage.Plus(Spend{Usage: more})
}

// spend adds to what a role has used in the run. An empty role is not counted.
func (r *Run) spend(role string, more Spend) {
	if role != "" && more != (Spend{}) {
		set(&r.Roles, role, r.Roles[role].Plus(more))
	}
}

// countEnd counts an agent's launch that has ended, and its running time. A launch that never
// started does not count.
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
			s.turnTo(f.Day)
			s.Today.Usage = s.Today.Usage.Plus(Spend{Launches: 1, Time: ran})
		}
	}
}

// since returns when the process got its slot and began to run.
func (p *Proc) since() time.Time {
	if p.From.After(p.Began) {
		return p.From
	}
	return p.Began
}

// ran returns how long the process has run, without its wait for a slot.
func (p *Proc) ran(at time.Time) time.Duration {
	if p.Waits {
		return 0
	}
	return max(at.Sub(p.since()), 0)
}

// turnTo resets the counts when the day changes.
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

// heldUp reports whether the attempt waits because a person has taken over it or another attempt in
// its worktree.
func (r *Run) heldUp(a *Attempt) bool {
	if a.State != Ready {
		return false
	}
	for _, o := range r.alive {
		if o.held() && o.Tree == a.Tree && !a.Reads {
			return true
		}
	}
	return false
}

func (f ClockHeld) apply(s *State, _ time.Time) {
	s.at(f.Run).setClock(f.Key, time.Time{})
	s.at(f.Run).Proc(f.Key).Waits = true
}

func (f ClockBegun) apply(s *State, at time.Time) {
	s.at(f.Run).setClock(f.Key, f.Deadline)
	p := s.at(f.Run).Proc(f.Key)
	p.Waits, p.From = false, at
}

func (r *Run) setClock(key string, to time.Time) {
	at := r.clock(key)
	if at == nil {
		wrong("%s: a deadline of %s, which is not at work", r.ID, key)
	}
	*at = to
}

// clock returns the deadline of the step's or reviewer's process, or nil if it is no longer
// working.
func (r *Run) clock(key string) *time.Time {
	p := r.Proc(key)
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

// Spent is a used signed answer.
type Spent struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // when to forget it
}

func (f SignatureUsed) apply(s *State, at time.Time) {
	for nonce, o := range s.Spent {
		if o.Until.Before(at) {
			delete(s.Spent, nonce)
		}
	}
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

// runOf returns the run of a launch, or nil.
func (s *State) runOf(launch string) *Run {
	run, _, _ := strings.Cut(launch, "/")
	return s.Runs[run]
}

func (f FileTaken) apply(s *State, _ time.Time) {
	m := f.Move
	s.Moves[m.ID] = &m
	s.index.changeMove(m.ID)
	if r := s.runOf(m.Of); r != nil && m.Run == "" {
		set(&r.Refused, m.Of, r.Refused[m.Of]+1)
	}
}

func (f FileGone) apply(s *State, _ time.Time) {
	delete(s.Moves, f.ID)
	s.index.changeMove(f.ID)
}

func (f AdvanceOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.now(f.Step, f.N).may(f.Run, f.FactKind())
	r.oweBranch(Write{Kind: WriteAdvance, Step: f.Step, N: f.N})
}

func (f RewindOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	if a := r.Attempt(f.Step, f.N); a == nil || r.Workspace == "" {
		wrong("%s: a rewind of %s#%d, which is on no branch", f.Run, f.Step, f.N)
	}
	r.Writes = slices.DeleteFunc(r.Writes,
		func(w *Write) bool { return w.Kind == WriteAdvance && w.Step == f.Step && w.N == f.N })
	r.oweBranch(Write{Kind: WriteRewind, Step: f.Step, N: f.N, With: f.With, Files: f.Files})
}

func (f LandingOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.Landing, r.Unlanded = true, ""
	r.Writes = append(r.Writes, &Write{ID: f.ID, Kind: WriteLand})
}

func (r *Run) oweBranch(w Write) {
	w.ID = r.ID + "/" + w.Step + "#" + strconv.Itoa(w.N) + "." + w.Kind
	r.Writes = append(r.Writes, &w)
}

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
func (r *Run) Count(gate, route string) int {
	if route == "" {
		return r.Fails[gate]
	}
	return r.Routes[gate][route]
}

// keepSaid keeps the feedback of a failure when a person's words replace it. The feedback of a pass
// is not kept.
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
	if f.Feedback != "" || q.State == Approved { // the feedback of a pass is no reason for this failure
		q.Feedback = f.Feedback
	}
	q.to(f.Run, fact, as)
	q.Outcome, q.Route, q.Times, q.ByKind, q.By, q.Ended = f.Outcome, "", 0, f.ByKind, f.By, at
	q.LetThrough, q.To = f.LetThrough, f.To
	if f.Forced {
		set(&r.Forced, f.Gate, true)
	}
	return q
}

func (f RoundRouted) apply(s *State, at time.Time) {
	q := RoundFailed(f).close(s, at, f.FactKind(), ByRoute)
	q.Route, q.Times = f.Outcome, f.Times
}
