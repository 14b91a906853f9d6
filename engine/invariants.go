package engine

import (
	"cmp"
	"fmt"
)

// Fault returns the first violated invariant of the run semantics, or "". It needs only the state,
// so it can be called after every event, for a snapshot, and by `sluice doctor`. Runs without a
// known spec are checked as far as possible. A fault is a bug of the engine or a changed snapshot.
func (s *State) Fault(specs Specs) string {
	laws := invariants{s}
	if why := laws.order(); why != "" { // the others look at all runs in order
		return why
	}
	if why := cmp.Or(laws.procs(), laws.firings()); why != "" {
		return why
	}
	for _, id := range s.Order {
		r := s.Runs[id]
		why := cmp.Or(laws.attempts(r), laws.rounds(r), laws.branch(r))
		if w := specs.Of(r.Digest); why == "" && w != nil {
			switch {
			case r.Phase == RunRunning:
				why = laws.running(r, w)
			case !r.Live():
				why = laws.ended(r, w)
			}
		}
		if why != "" {
			return id + ": " + why
		}
	}
	return ""
}

// invariants are the rules that every state keeps. Each returns how the state breaks it, or "".
type invariants struct{ s *State }

func (i invariants) order() string {
	if len(i.s.Order) != len(i.s.Runs) {
		return fmt.Sprintf("%d runs are kept, %d are in order", len(i.s.Runs), len(i.s.Order))
	}
	for _, id := range i.s.Order {
		if r := i.s.Runs[id]; r == nil || r.ID != id {
			return fmt.Sprintf("run %s is in order and not kept", id)
		}
	}
	return ""
}

// procs: at most one process per key, step and worktree, including those being stopped (I3).
func (i invariants) procs() string {
	keys, trees, steps := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, id := range i.s.Order {
		for _, p := range i.s.Runs[id].Procs {
			if keys[p.Key] {
				return fmt.Sprintf("two processes of %s", p.Key)
			}
			keys[p.Key] = true
			if o := trees[p.Tree]; p.Tree != "" && o != "" {
				return fmt.Sprintf("two processes in worktree %s: %s and %s", p.Tree, o, p.Key)
			}
			trees[p.Tree] = p.Key
			if p.Kind != ProcStep {
				continue
			}
			step := id + "/" + p.Step
			if o := steps[step]; o != "" {
				return fmt.Sprintf("two processes of step %s: %s and %s", step, o, p.Key)
			}
			steps[step] = p.Key
		}
	}
	return ""
}

// firings: a key starts at most one run; what waits for its run waits once, and only while its
// triggers are armed.
func (i invariants) firings() string {
	seen := map[string]string{}
	for _, id := range i.s.Order {
		if r := i.s.Runs[id]; r.Fired != nil && r.By.Via == ViaTrigger {
			key := r.Workflow + " " + r.Fired.Trigger + " " + r.Fired.Key
			if seen[key] != "" {
				return fmt.Sprintf("%s started %s and %s", key, seen[key], id)
			}
			seen[key] = id
		}
	}
	for _, id := range sortedKeys(i.s.Armed) {
		for _, f := range i.s.Armed[id].Firings {
			key := id + " " + f.Trigger + " " + f.Key
			if seen[key] != "" || !i.s.Armed[id].On {
				return fmt.Sprintf("%s waits for a run: armed %t, started %q", key, i.s.Armed[id].On, seen[key])
			}
			seen[key] = "one that waits"
		}
	}
	return ""
}

// attempts: numbers are never reused, and only a step's newest attempt can be current (I1).
func (invariants) attempts(r *Run) string {
	for _, step := range sortedKeys(r.Attempts) {
		as := r.Attempts[step]
		for i, a := range as {
			if a.N != i+1 || i+1 < len(as) && a.State != Superseded {
				return fmt.Sprintf("attempt %s.%d is %s and not the newest of %d", step, a.N, a.State, len(as))
			}
		}
	}
	return ""
}

// rounds: numbers are never reused; an open round is its gate's newest, over a current attempt
// at its gates; what was left to a person passes only by a person (I1, I4).
func (invariants) rounds(r *Run) string {
	for _, gate := range sortedKeys(r.Rounds) {
		qs := r.Rounds[gate]
		for i, q := range qs {
			if q.N != i+1 || q.Open() && i+1 < len(qs) {
				return fmt.Sprintf("round %s#%d is %s and not the newest of %d", gate, q.N, q.State, len(qs))
			}
			if a := r.Current(q.Step); q.Open() && (a == nil || a.N != q.Attempt || a.State != Gating) {
				return fmt.Sprintf("round %s#%d is open over %s.%d, which is not at its gates", gate, q.N,
					q.Step, q.Attempt)
			}
			if q.State == Approved && q.Level == LevelHuman && q.ByKind != "human" && q.ByKind != "when" {
				return fmt.Sprintf("round %s#%d was a person's and passed by %s", gate, q.N, q.ByKind)
			}
		}
	}
	return ""
}

// branch: a branch may only move to passed work (I14).
func (invariants) branch(r *Run) string {
	for _, w := range r.Writes {
		if a := r.Current(w.Step); w.Kind == WriteAdvance && (a == nil || a.N != w.N || a.State != Passed) {
			return fmt.Sprintf("%s is owed, and %s.%d does not stand passed", w.ID, w.Step, w.N)
		}
	}
	return ""
}

// running: no step has a current attempt while one that it follows from is active, a passed
// step's needs have passed, and a step at its gates has an open round (I2, I6).
func (invariants) running(r *Run, w *Spec) string {
	v := r.look(w)
	for _, st := range w.Steps {
		if v.of[st.place].active {
			after := r.follows(w, st.ID)
			for _, t := range w.graph.order {
				if b := r.Current(t); after[t] && b != nil {
					return fmt.Sprintf("%s is at work or due while %s, which follows from it, has attempt %d (%s)", st.ID, t, b.N,
						b.State)
				}
			}
		}
		a := r.Current(st.ID)
		if a.Done() {
			for _, n := range st.Needs {
				if !r.Current(n).Done() {
					return fmt.Sprintf("%s passed, its need %s has not", st.ID, n)
				}
			}
		}
		if a != nil && a.State == Gating {
			if _, q := r.openRound(st); q == nil {
				return fmt.Sprintf("%s.%d is at its gates without an open round", st.ID, a.N)
			}
		}
	}
	return ""
}

// ended: an ended run has nothing live and owes only stops and rewinds; a completed one has
// nothing to do and no process, unless somebody merged its pull request meanwhile (I7).
func (invariants) ended(r *Run, w *Spec) string {
	for _, st := range w.Steps {
		if a := r.Current(st.ID); a.Live() {
			return fmt.Sprintf("it is %s, and %s.%d is %s", r.Phase, st.ID, a.N, a.State)
		}
	}
	for _, p := range r.Procs {
		if p.Kind != ProcHook && r.wanted(p) {
			return fmt.Sprintf("it is %s and still wants %s", r.Phase, p.Key)
		}
		if r.Phase == RunCompleted && p.Step != "" && r.EndCause != causeMerged {
			return fmt.Sprintf("it is completed, and %s is alive", p.Key)
		}
	}
	for _, w := range r.Writes {
		if w.Kind != WriteRewind || r.Phase == RunCompleted && r.EndCause != causeMerged {
			return fmt.Sprintf("it is %s and still owes %s", r.Phase, w.ID)
		}
	}
	if v := r.look(w); r.Phase == RunCompleted && v.active > 0 && r.EndCause != causeMerged {
		return fmt.Sprintf("it is completed with %v to do", v.steps(w))
	}
	return ""
}
