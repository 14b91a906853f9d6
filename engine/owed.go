package engine

import (
	"fmt"
	"time"
)

// Kinds of effect.
const (
	DoRun    = "run"    // the process with the key shall be alive: start or adopt it, wait for its end; -> ProcessEnded
	DoStop   = "stop"   // the process with the key shall be gone: end its tree; -> ProcessEnded
	DoWatch  = "watch"  // look for the commit or pull request of the attempt; -> CommitSeen, PullSeen
	DoOffer  = "offer"  // lay out what an offered step needs (worktree, prompt); comes back to nothing: it is owed while on offer
	DoNotify = "notify" // tell a person; -> Noticed
	DoWrite  = "write"  // write a retry-context file, or a gate's outputs; -> FileWritten
	DoMove   = "move"   // move a file taken in out of its inbox; -> FileMoved
	DoLook   = "look"   // look whether the outputs of what a step needs elsewhere are there; -> Looked
)

// Effect is something owed to the world. Effects with the same Kind and Key are the same: carrying one out twice has to
// be harmless.
type Effect struct {
	Kind string
	Key  string
	Run  string
	Step string
	Gate string
	N, K int

	Proc   *Proc   // run, stop
	Notice *Notice // notify
	Write  *Write  // write
	Move   *Move   // move
	Pins   []string
	Why    string // stop
}

// Name identifies the effect among all that are owed.
func (e Effect) Name() string { return e.Kind + " " + e.Key }

// wanted says that the process is still of use.
func (r *Run) wanted(p *Proc) bool {
	if p.Kind == ProcHook && p.Step == "" {
		return !r.Live()
	}
	if r.Phase != RunRunning {
		return false
	}
	if p.Kind == ProcReview {
		q := r.CurrentRound(p.Gate)
		return q != nil && q.N == p.N && q.K == p.K && q.State == OnReview
	}
	a := r.Current(p.Step)
	if a == nil || a.N != p.N {
		return false
	}
	if p.Kind == ProcStep {
		return a.K == p.K && (a.State == Running || a.State == Signalled)
	}
	return a.State == Signalled
}

// Owed gives what the world is owed, from the state alone, in a fixed order.
func (s *State) Owed(specs Specs) []Effect {
	var out []Effect
	for _, id := range s.Order {
		out = s.owedBy(out, s.Runs[id], specs)
	}
	for _, id := range sortedKeys(s.Moves) {
		m := s.Moves[id]
		out = append(out, Effect{Kind: DoMove, Key: id, Run: m.Run, Move: m})
	}
	for _, id := range sortedKeys(s.Notices) {
		n := s.Notices[id]
		out = append(out, Effect{Kind: DoNotify, Key: id, Run: n.Run, Step: n.Step, Gate: n.Gate, N: n.N, Notice: n})
	}
	return out
}

func (s *State) owedBy(out []Effect, r *Run, specs Specs) []Effect {
	for _, p := range r.Procs {
		e := Effect{Kind: DoRun, Key: p.Key, Run: r.ID, Step: p.Step, Gate: p.Gate, N: p.N, K: p.K, Proc: p}
		if !r.wanted(p) {
			e.Kind, e.Why = DoStop, "superseded"
			if !r.Live() {
				e.Why = r.Phase
			}
		} else if p.Stop != "" {
			e.Kind, e.Why = DoStop, p.Stop
		}
		out = append(out, e)
	}
	if r.Phase != RunRunning {
		return out
	}
	for _, w := range r.Writes {
		out = append(out, Effect{Kind: DoWrite, Key: w.ID, Run: r.ID, Gate: w.Gate, N: w.N, Write: w})
	}
	w := specs(r.Digest)
	if w == nil {
		return out
	}
	for _, st := range w.Steps {
		a := r.Current(st.ID)
		if a != nil && a.State == Running && a.Offered {
			out = append(out, Effect{Kind: DoOffer, Key: a.Key, Run: r.ID, Step: st.ID, N: a.N, K: a.K})
		}
		switch {
		case a != nil && a.State == Running && (a.SignalType == SignalCommit || a.SignalType == SignalPull):
			out = append(out, Effect{Kind: DoWatch, Key: a.Key, Run: r.ID, Step: st.ID, N: a.N, K: a.K})
		case a == nil && len(st.ExtNeeds) > 0 && !r.Paused:
			if pins := s.lookable(r, w, st); pins != nil {
				out = append(out, Effect{Kind: DoLook, Key: fmt.Sprintf("%s/%s#%d %v", r.ID, st.ID, len(r.Attempts[st.ID])+1, pins), Run: r.ID, Step: st.ID, Pins: pins})
			}
		}
	}
	return out
}

// lookable gives what satisfies the step's needs of other workflows by the record, where the step waits for nothing
// else and it has not been looked at; nil otherwise.
func (s *State) lookable(r *Run, w *Spec, st *Step) []string {
	d := &decider{s: s}
	if !d.view(r, w).due[st.ID] {
		return nil
	}
	var pins []string
	for _, n := range st.ExtNeeds {
		o := s.newest(n.Workflow)
		if o == nil || !o.Current(n.Step).Done() {
			return nil
		}
		pins = append(pins, fmt.Sprintf("%s/%s#%d", o.ID, n.Step, o.Current(n.Step).N))
	}
	if met := r.Met[st.ID]; len(met) == len(pins) {
		same := true
		for i := range met {
			same = same && met[i] == pins[i]
		}
		if same {
			return nil
		}
	}
	return pins
}

// Wake gives the earliest moment later than after at which time alone changes something, zero for never. What passed up
// to after was seen by the Ticked decided then.
func (s *State) Wake(after time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(after) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, r := range s.Runs {
		for _, p := range r.Procs {
			if p.Stop == "" && r.wanted(p) {
				sooner(p.Deadline)
			}
		}
		if r.Phase == RunRunning {
			r.wake(sooner)
		}
	}
	return at
}

func (r *Run) wake(sooner func(time.Time)) {
	for step := range r.Attempts {
		a := r.Current(step)
		if a == nil {
			continue
		}
		switch p := r.Proc(a.Key); a.State {
		case Ready:
			if !r.Paused {
				sooner(a.NotBefore)
			}
		case Running:
			if p == nil || p.Stop == "" {
				sooner(a.Deadline)
			}
			sooner(a.GraceUntil)
		case Signalled:
			if p != nil && p.Stop == "" {
				sooner(a.LingerUntil)
			}
		}
	}
	for gate := range r.Rounds {
		q := r.CurrentRound(gate)
		if !q.Open() {
			continue
		}
		switch p := r.Proc(q.Key); q.State {
		case OnReview:
			if p != nil && p.Stop == "" {
				sooner(q.Deadline)
			} else if p == nil && !r.Paused {
				sooner(q.NotBefore)
			}
		case OnWindow:
			if !r.Paused {
				sooner(q.WindowEnds)
			}
		case OnHuman:
			if !r.Paused {
				sooner(q.Due)
				sooner(q.RemindAt)
			}
		}
	}
	if r.TimeLimit > 0 && !r.BusySince.IsZero() {
		sooner(r.BusySince.Add(time.Duration(r.TimeLimit - r.Spent)))
	}
}

// NeedsScan says that some deadline not after at is closed by a scan of the inboxes (Scanned), not by the clock alone.
func (s *State) NeedsScan(at time.Time) bool {
	for _, r := range s.Runs {
		if r.Phase != RunRunning || r.PausedWhy == pausedSpec { // what cannot be read is closed by no scan
			continue
		}
		for step := range r.Attempts {
			if a := r.Current(step); a != nil && a.inGrace() && !a.inGit() && passed(a.GraceUntil, at) {
				return true
			}
		}
		for gate := range r.Rounds {
			if q := r.CurrentRound(gate); q.Open() && q.State == OnWindow && !r.Paused && passed(q.WindowEnds, at) {
				return true
			}
		}
	}
	return false
}
