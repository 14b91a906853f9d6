package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Apply folds facts, decided at the given time, into the state. It is the only writer. It needs no
// spec: facts are complete in themselves.
func (s *State) Apply(at time.Time, facts ...Fact) {
	for _, f := range facts {
		s.apply(at, f)
	}
}

func (s *State) apply(at time.Time, f Fact) {
	s.Clock++
	id := f.RunID()
	r := s.find(id)
	for o := r; o != nil; o = s.Parent(o) {
		o.tick(at)
	}
	f.apply(s, at)
	s.index.crossed = s.index.crossed || crosses(f)
	if r = s.find(id); r == nil {
		return
	}
	r.drawn = r.drawn && !rejoins(f)
	if _, gone := f.(ProcessGone); gone && s.index.watched {
		for _, k := range s.family(r) { // a rewind waits for the processes in its worktree
			if len(k.rewinds()) > 0 {
				s.index.change(k)
			}
		}
	}
	for o := r; o != nil; o = s.Parent(o) { // a child's state is part of its parents'
		s.reindex(o)
		o.BusySince = time.Time{}
		if o.busy() {
			o.BusySince = at
		}
	}
}

// find returns the run, or nil. It caches the last one, as consecutive facts often concern the same
// run.
func (s *State) find(id string) *Run {
	if id == "" {
		return nil
	}
	if last := s.index.last; last != nil && last.ID == id {
		return last
	}
	r := s.Runs[id]
	if r != nil {
		s.index.last = r
	}
	return r
}

// tick adds the time since the last fact to the run's Spent while something is under way.
func (r *Run) tick(at time.Time) {
	if !r.BusySince.IsZero() && at.After(r.BusySince) {
		r.Spent += Duration(at.Sub(r.BusySince))
	}
}

// wrong panics: a fact contradicts the state.
func wrong(format string, args ...any) { panic("engine: " + fmt.Sprintf(format, args...)) }

func (s *State) at(run string) *Run {
	r := s.find(run)
	if r == nil {
		wrong("a fact about run %q, which does not exist", run)
	}
	return r
}

// now returns the step's current attempt, whose number must be n.
func (r *Run) now(step string, n int) *Attempt {
	a := r.Current(step)
	if a == nil || a.N != n {
		wrong("%s: a fact about attempt %s.%d, which is not current", r.ID, step, n)
	}
	return a
}

func (r *Run) round(gate string, n int) *Round {
	q := r.CurrentRound(gate)
	if q == nil || q.N != n {
		wrong("%s: a fact about round %s#%d, which is not current", r.ID, gate, n)
	}
	return q
}

func (f SettingsTaken) apply(s *State, _ time.Time) { s.Config = f.Config }

func (f RunStarted) apply(s *State, at time.Time) {
	if s.Runs[f.Run] != nil {
		wrong("run %s twice", f.Run)
	}
	if f.Child == nil {
		s.Numbers[f.Workflow] = f.N
	}
	s.Order = append(s.Order, f.Run)
	r := &Run{ID: f.Run, Workflow: f.Workflow, N: f.N, Parallel: f.Parallel, Digest: f.Digest, File: f.File,
		Vars: f.Vars, Trees: f.Trees, Workspace: f.Workspace, Stubs: f.Stubs, By: f.By, Requested: at, Attempts: map[string][]*Attempt{}, Rounds: map[string][]*Round{},
		Allowance: f.MaxSteps, TimeLimit: f.TimeLimit, UsageLimit: f.UsageLimit, RoleLimits: maps.Clone(f.RoleLimits), Child: f.Child}
	r.to(f.FactKind(), RunPending)
	s.Runs[f.Run] = r
	s.enter(r)
	if f.Child != nil {
		r.Stubs = s.Parent(r).Stubs
		f.Child.began(s, f.Run, at)
	}
}

func (f RunBegan) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.to(f.FactKind(), RunRunning)
	r.Started, r.RetryDir = at, f.RetryDir
	if r.Child == nil {
		r.Writes = append(r.Writes, &Write{ID: f.Run + "/sweep", Sweep: true})
	}
}

func (f NeedsMet) apply(s *State, _ time.Time) { set(&s.at(f.Run).Met, f.Step, f.Pins) }

func (f StepStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	if r.Current(f.Step) != nil || f.N != len(r.Attempts[f.Step])+1 {
		wrong("%s: second current attempt of %s", f.Run, f.Step)
	}
	a := &Attempt{N: f.N, Worktree: f.Worktree, Tree: f.Tree, Since: s.Clock, Pins: f.Pins, Started: at, step: f.Step, Children: f.Children, List: f.List, Reads: f.Reads}
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
	a := r.now(f.Step, f.N)
	a.to(f.Run, f.FactKind(), Running)
	if f.K != a.K+1 {
		wrong("%s: launch %d of %s.%d in state %s", f.Run, f.K, f.Step, f.N, a.State)
	}
	if f.K == 1 {
		r.Turns++
		a.Turn = r.Turns
	}
	a.K, a.Key, a.Offered, a.Tree = f.K, f.Key, f.Offered, f.Tree
	a.Launched, a.Deadline, a.SignalType, a.SignalValue = at, f.Deadline, f.SignalType, f.SignalValue
	a.NotBefore, a.LimitWait, a.BudgetWait, a.GraceUntil, a.Reopened, a.Exit = time.Time{}, false, "", time.Time{}, false, nil
	if !f.Offered {
		s.begin(r, &Proc{Key: f.Key, Kind: ProcStep, Step: f.Step, N: f.N, K: f.K, Tree: a.Holds(), Began: at, Role: f.Role})
	}
}

func (s *State) begin(r *Run, p *Proc) {
	if r.Proc(p.Key) != nil {
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
	a := s.at(f.Run).now(f.Step, f.N)
	a.to(f.Run, f.FactKind(), Signalled)
	if a.K != f.K {
		wrong("%s: a signal of launch %d of %s.%d, which is at launch %d", f.Run, f.K, f.Step, f.N, a.K)
	}
	a.Status, a.Via, a.Author, a.Summary, a.Question, a.Options = f.Status, f.Via, f.Author, f.Summary, f.Question, f.Options
	a.LingerUntil, a.GraceUntil, a.Failure, a.Broken, a.Held = f.LingerUntil, time.Time{}, f.Failure, f.Broken, nil
	a.did(f.Makers...)
	if len(f.Answer) > 0 {
		a.Answer = f.Answer
	}
}

func (f StopOrdered) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	p := r.Proc(f.Key)
	if p == nil {
		wrong("%s: stop of %s, which is not alive", f.Run, f.Key)
	}
	p.Stop = f.Why
}

func (f DeadlineMoved) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	if f.Key != "" {
		p := r.Proc(f.Key)
		if p == nil {
			wrong("%s: a deadline of %s, which is not alive", f.Run, f.Key)
		}
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
	p := r.Proc(f.Key)
	if p == nil {
		wrong("%s: end of %s, which is not alive", f.Run, f.Key)
	}
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
	a := s.at(f.Run).now(f.Step, f.N)
	a.to(f.Run, f.FactKind(), Ready)
	a.NotBefore, a.LimitWait, a.BudgetWait = f.NotBefore, f.Limit, f.Budget
	switch f.Class {
	case ClassInfrastructure:
		a.Restarts++
	case ClassLimit:
		a.Waits++
	}
}

func (f CheckStarted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.now(f.Step, f.N).may(f.Run, f.FactKind())
	s.begin(r, &Proc{Key: f.Key, Kind: ProcCheck, Step: f.Step, N: f.N, Tree: f.Tree, Began: at, Deadline: f.Deadline})
}

func (f Checked) apply(s *State, _ time.Time) {
	a := s.at(f.Run).now(f.Step, f.N).may(f.Run, f.FactKind())
	a.Checked, a.Digest, a.Content, a.Protected = true, f.Digest, f.Content, f.Protected
	a.ProtectedAs, a.ToReview, a.Unshipped, a.Apart = f.ProtectedAs, f.ToReview, f.Unshipped, f.Apart
	if !f.OK && a.Status == StatusDone {
		a.Failure = f.Why
	}
	if f.Broken != "" {
		a.Broken = f.Broken
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

func (f RoundOpened) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	a := r.now(f.Step, f.Attempt)
	a.to(f.Run, f.FactKind(), Gating)
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
	s.begin(r, &Proc{Key: f.Key, Kind: ProcReview, Step: q.Step, Gate: f.Gate, N: f.N, K: f.K, Tree: f.Tree, Began: at, Role: f.Role})
}

func (f Judged) apply(s *State, _ time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N).may(f.Run, f.FactKind())
	q.Outcome, q.Score, q.Scores, q.Feedback, q.Findings, q.Answer, q.Read = f.Outcome, f.Score, f.Scores, f.Feedback, f.Findings, f.Answer, f.Read
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
	q := s.at(f.Run).round(f.Gate, f.N)
	q.to(f.Run, f.FactKind(), OnWindow)
	q.WindowEnds = f.Until
}

func (f HumanAsked) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N)
	q.to(f.Run, f.FactKind(), OnHuman)
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

func (f RetryContextOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	set(&r.Files, f.Gate, f.File)
	r.round(f.Gate, f.N).may(f.Run, f.FactKind()).File = f.File
	r.Writes = append(r.Writes, &Write{ID: f.Run + "/" + f.Gate + "." + strconv.Itoa(f.File), Gate: f.Gate, N: f.N, File: f.File, Path: f.Path})
}

func (f OutputsOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	what := ".outputs"
	if r.round(f.Gate, f.N).may(f.Run, f.FactKind()).State == OnHuman { // the reviewer's outputs were written before
		what = ".answer"
	}
	r.Writes = append(r.Writes, &Write{ID: f.Run + "/" + f.Gate + "#" + strconv.Itoa(f.N) + what, Gate: f.Gate, N: f.N})
}

func (f WriteDone) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.Writes = slices.DeleteFunc(r.Writes, func(w *Write) bool {
		if w.ID == f.ID && w.Kind == WriteLand {
			r.Unlanded = f.Why
		}
		return w.ID == f.ID
	})
}

func (f RoundPassed) apply(s *State, at time.Time) {
	q := s.at(f.Run).round(f.Gate, f.N)
	q.to(f.Run, f.FactKind(), Approved)
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
}

func (f RoundVoided) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	q := r.round(f.Gate, f.N)
	q.to(f.Run, f.FactKind(), Undone)
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
func (r *Run) countAnew(gate string) {
	delete(r.Fails, gate)
	delete(r.Routes, gate)
	delete(r.Same, gate)
	delete(r.Renews, gate)
}

func (f CountReset) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.countAnew(f.Gate)
	delete(r.Exhausted, f.Gate)
}

func (f StepPassed) apply(s *State, at time.Time) {
	a := s.at(f.Run).now(f.Step, f.N)
	a.to(f.Run, f.FactKind(), Passed)
	a.To, a.Ended = f.To, at
}

func (f StepRouted) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	a := r.now(f.Step, f.N)
	a.to(f.Run, f.FactKind(), Routed)
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
	r.Writes = slices.DeleteFunc(r.Writes, func(w *Write) bool { return w.Kind == WriteAdvance && w.Step == f.Step || w.Kind == WriteLand })
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

func (f WorkSent) apply(s *State, _ time.Time)   { set(&s.at(f.Run).Sent, f.Step, f.From) }
func (f WorkUnsent) apply(s *State, _ time.Time) { delete(s.at(f.Run).Sent, f.Step) }

func (f RunPaused) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	r.Paused, r.PausedWhy, r.PausedAt = true, f.Why, at
	for _, qs := range r.Rounds { // a pause stops the window's clock
		if q := qs[len(qs)-1]; q.State == OnWindow {
			q.Remains = Duration(max(q.WindowEnds.Sub(at), 0))
		}
	}
}

func (f RunResumed) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	paused := r.PausedAt
	r.Paused, r.PausedWhy, r.PausedAt = false, "", time.Time{}
	if r.List != nil { // the file may have been edited during the pause
		r.List.unlook(s)
	}
	r.grant(f.Grant)
	for _, qs := range r.Rounds {
		switch q := qs[len(qs)-1]; {
		case q.State == OnWindow:
			q.WindowEnds, q.Remains = at.Add(time.Duration(q.Remains)), 0
		case q.State == OnHuman && !q.Due.IsZero():
			since := paused
			if q.Asked.After(since) {
				since = q.Asked
			}
			q.Due = q.Due.Add(max(at.Sub(since), 0))
		}
	}
}

func (r *Run) grant(g Grant) {
	r.Allowance += g.Steps
	r.TimeLimit += g.Time
	r.UsageLimit.Tokens += g.Usage.Tokens
	r.UsageLimit.CostUSD += g.Usage.CostUSD
	if r.List != nil {
		r.List.Ratio += g.Ratio
	}
	if limit, ok := r.RoleLimits[g.Role]; ok && g.Role != "" {
		r.RoleLimits[g.Role] = limit.Plus(g.Spend)
	}
}

func (f RunEnded) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.to(f.FactKind(), f.Phase)
	r.EndStep, r.EndWhy, r.Paused, r.PausedWhy, r.PausedAt, r.Ended = f.Step, f.Why, false, "", time.Time{}, at
	r.Writes = slices.DeleteFunc(r.Writes, func(w *Write) bool { return w.Kind != WriteRewind })
	r.EndCause, r.EndLimit = f.Cause, f.Limit
	for step := range r.Attempts { // live attempts stop; a retry makes their steps due again
		if r.Current(step).Live() {
			r.supersede(step, f.FactKind(), at)
		}
	}
}

func (f RunReopened) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.to(f.FactKind(), RunRunning)
	r.Ended, r.EndStep, r.EndWhy, r.EndCause, r.EndLimit, r.Hooked = time.Time{}, "", "", "", "", false
	r.Landing, r.Unlanded = false, ""
	r.grant(f.Grant)
	if f.RetryDir != "" {
		r.RetryDir = f.RetryDir
	}
}

func (f RunForgotten) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), absent)
	delete(s.Runs, f.Run)
	s.leave(r)
	s.Order = slices.DeleteFunc(s.Order, func(id string) bool { return id == f.Run })
}

func (f NoticeOwed) apply(s *State, _ time.Time) {
	n := f.Notice
	s.Notices[n.ID] = &n
	s.index.changeNotice(n.ID)
	if r := s.Runs[n.Run]; r != nil && n.Once {
		set(&r.Told, n.ID, true)
	}
}

func (f NoticeTried) apply(s *State, _ time.Time) {
	delete(s.Notices, f.ID)
	s.index.changeNotice(f.ID)
	r := s.Runs[f.Run]
	if r == nil || f.Gate == "" {
		return
	}
	if q := r.CurrentRound(f.Gate); q != nil && q.N == f.N {
		q.Noticed = f.Results
	}
}

func (f Ignored) apply(*State, time.Time) {}
