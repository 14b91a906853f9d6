package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		o.Spent = Duration(o.spent(at))
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

// find returns the run, or nil. It caches the last one, as consecutive facts often concern the same run.
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

// spent returns how long the run has been under way.
func (r *Run) spent(at time.Time) time.Duration {
	if r.BusySince.IsZero() {
		return time.Duration(r.Spent)
	}
	return time.Duration(r.Spent) + max(at.Sub(r.BusySince), 0)
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
		Vars: f.Vars, Trees: f.Trees, Workspace: f.Workspace, Stubs: f.Stubs, By: f.By, Fired: f.Fired, Requested: at,
		Attempts: map[string][]*Attempt{}, Rounds: map[string][]*Round{},
		Allowance: f.MaxSteps, TimeLimit: f.TimeLimit, UsageLimit: f.UsageLimit,
		roles: roles{RoleLimits: maps.Clone(f.RoleLimits)}, Child: f.Child}
	r.to(f.FactKind(), RunPending)
	s.Runs[f.Run] = r
	s.index.enter(r)
	f.Fired.began(s, f.Workflow, f.Run)
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

func (f RunPaused) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.may(f.FactKind(), stays)
	r.Paused, r.PausedWhy, r.PausedText, r.PausedAt = true, f.Why, f.Text, at
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
	r.Paused, r.PausedWhy, r.PausedText, r.PausedAt = false, "", "", time.Time{}
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
	r.EndStep, r.EndWhy, r.Ended = f.Step, f.Why, at
	r.Paused, r.PausedWhy, r.PausedText, r.PausedAt = false, "", "", time.Time{}
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
	s.index.leave(r)
	s.Order = slices.DeleteFunc(s.Order, func(id string) bool { return id == f.Run })
}

func (f Ignored) apply(*State, time.Time) {}

func (f NoteTaken) apply(s *State, at time.Time) {
	r := s.at(f.Run)
	r.Notes = append(r.Notes, Note{N: f.N, At: at, Step: f.Step, Text: f.Text, By: f.By})
}

// runOf returns the run of a launch, or nil.
func (s *State) runOf(launch string) *Run {
	run, _, _ := strings.Cut(launch, "/")
	return s.Runs[run]
}
