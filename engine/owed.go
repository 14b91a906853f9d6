package engine

import (
	"fmt"
	"slices"
)

// Kinds of effect.
const (
	DoRun    = "run"    // the process must be alive: start or adopt it, wait for its end; -> ProcessEnded
	DoStop   = "stop"   // the process must be gone: end its tree; -> ProcessEnded
	DoWatch  = "watch"  // look for the attempt's commit or pull request; -> CommitSeen, PullSeen
	DoOffer  = "offer"  // create what an offered step needs (worktree, prompt); no event: owed while on offer
	DoNotify = "notify" // notify a person; -> Noticed
	DoWrite  = "write"  // write a retry-context file or a gate's outputs; -> FileWritten
	DoMove   = "move"   // move an accepted file out of its inbox; -> FileMoved
	DoTasks  = "tasks"  // read a list's task file; -> TasksSeen
	DoSave   = "save"   // write statuses into a list's task file; -> TasksSaved, or TasksSeen if the file changed
	DoForge  = "forge"  // follow the run's pull request; -> Answered, PullEnded
	DoListen = "listen" // look for what fires a trigger, as long as it is owed; -> Fired, many times
	DoFire   = "fire"   // read the spec for a firing; -> FiringRead, and meanwhile FiringHeld
	DoLook   = "look"   // look for outputs that a step needs from elsewhere; -> Looked
)

// Effect is something owed to the world. Effects with the same Kind and Key are the same: carrying
// one out twice must be harmless. Its pointers are the state's own, to be read only.
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
	// listen, fire: the workflow, its trigger by name
	Armed, Trigger string
	Firing         *Firing // fire
	Why            string  // stop
	Tree           string  // write: the worktree whose branch it moves
}

// Name identifies the effect among all that are owed.
func (e Effect) Name() string { return e.Kind + " " + e.Key }

// wanted reports whether the process is still needed.
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

// Debtor is who owes effects: a run (Kind ""), an accepted file (DoMove), a notice (DoNotify) or the
// triggers of a workflow (DoListen).
type Debtor struct{ Kind, ID string }

// Debtor returns who owes the effect.
func (e *Effect) Debtor() Debtor {
	if e.Kind == DoMove || e.Kind == DoNotify {
		return Debtor{e.Kind, e.Key}
	}
	if e.Armed != "" {
		return Debtor{DoListen, e.Armed}
	}
	return Debtor{"", e.Run}
}

// Owed returns what the world is owed, from the state alone, in a fixed order.
func (s *State) Owed(specs Specs) []Effect {
	var out []Effect
	for _, who := range s.debtors() {
		out = s.OwedBy(out, who, specs)
	}
	return out
}

// debtors returns all who may owe anything, in order.
func (s *State) debtors() []Debtor {
	out := make([]Debtor, 0, len(s.Order)+len(s.Moves)+len(s.Notices))
	for _, id := range s.Order {
		out = append(out, Debtor{"", id})
	}
	out = appendDebtors(out, DoMove, sortedKeys(s.Moves))
	out = appendDebtors(out, DoNotify, sortedKeys(s.Notices))
	return appendDebtors(out, DoListen, sortedKeys(s.Armed))
}

// OwedBy appends what one debtor owes.
func (s *State) OwedBy(out []Effect, who Debtor, specs Specs) []Effect {
	switch who.Kind {
	case DoMove:
		if m := s.Moves[who.ID]; m != nil {
			out = append(out, Effect{Kind: DoMove, Key: who.ID, Run: m.Run, Move: m})
		}
	case DoNotify:
		if n := s.Notices[who.ID]; n != nil {
			out = append(out, Effect{Kind: DoNotify, Key: who.ID, Run: n.Run, Step: n.Step, Gate: n.Gate, N: n.N, Notice: n})
		}
	case DoListen:
		out = owedByArmed(s, out, who.ID, specs)
	default:
		if r := s.Runs[who.ID]; r != nil {
			out = s.owedByRun(out, r, specs)
		}
	}
	return out
}

func (s *State) owedByRun(out []Effect, r *Run, specs Specs) []Effect {
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
	if l := r.List; l != nil && l.Writing > 0 {
		out = append(out, Effect{Kind: DoSave, Key: writeKey(r.ID, l), Run: r.ID, Step: l.Step, N: l.N})
	}
	for _, w := range r.Writes {
		e := Effect{Kind: DoWrite, Key: w.ID, Run: r.ID, Step: w.Step, Gate: w.Gate, N: w.N, Write: w}
		switch w.Kind {
		case WriteAdvance, WriteRewind:
			e.Tree = r.Attempt(w.Step, w.N).Tree
		case WriteLand:
			e.Tree = r.Workspace
		}
		if w.Kind == WriteRewind && s.inUse(r, e.Tree, w.Files) {
			break // later writes wait too: rewinds go last attempt first
		}
		out = append(out, e)
	}
	w := specs.Of(r.Digest)
	if r.Phase != RunRunning || w == nil {
		return out
	}
	for _, a := range w.inOrder(r.alive) {
		if a.State != Running {
			continue
		}
		if l := r.List; a.List && l != nil && l.N == a.N && !l.Looked && l.Writing == 0 && len(r.Writes) == 0 &&
			r.ofStep(a) < w.Step(a.step).ForEach.MaxParallel {
			out = append(out, Effect{Kind: DoTasks, Key: lookKey(r.ID, l), Run: r.ID, Step: a.step, N: a.N})
		}
		if a.Offered {
			out = append(out, Effect{Kind: DoOffer, Key: a.Key, Run: r.ID, Step: a.step, N: a.N, K: a.K})
		}
		if a.inGit() {
			out = append(out, Effect{Kind: DoWatch, Key: a.Key, Run: r.ID, Step: a.step, N: a.N, K: a.K})
		}
	}
	out = owedAtForge(out, r, w)
	for _, st := range w.graph.ext {
		if r.Paused || r.Current(st.ID) != nil {
			continue
		}
		if pins := s.lookable(r, w, st); pins != nil {
			out = append(out, Effect{Kind: DoLook,
				Key: fmt.Sprintf("%s/%s#%d %v", r.ID, st.ID, len(r.Attempts[st.ID])+1, pins), Run: r.ID, Step: st.ID, Pins: pins})
		}
	}
	return out
}

// inUse reports whether the tree still has a process of the run or, with all, of any run that may share it.
func (s *State) inUse(r *Run, tree string, all bool) bool {
	if all {
		return slices.ContainsFunc(s.family(r), func(k *Run) bool { return k.Procs.inTree(tree) })
	}
	return r.Procs.inTree(tree)
}

// family returns the runs that may share the run's worktree: its topmost ancestor, and descendants
// that are live or have a process.
func (s *State) family(r *Run) []*Run { return s.root(r).withKids() }

// root returns the topmost ancestor of a run, or the run itself.
func (s *State) root(r *Run) *Run {
	for o := s.Parent(r); o != nil; o = s.Parent(r) {
		r = o
	}
	return r
}

// withKids returns the run and its descendants that are live or have a process.
func (r *Run) withKids() []*Run {
	all := []*Run{r}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].kids...)
	}
	return all
}

// rewinds returns the attempts whose branch must still go back; nothing is launched in their worktrees before that.
func (r *Run) rewinds() (of []*Attempt) {
	for _, w := range r.Writes {
		if w.Kind == WriteRewind {
			of = append(of, r.Attempt(w.Step, w.N))
		}
	}
	return of
}

// lookable returns what satisfies the step's needs from other workflows by the record, if the step
// waits for nothing else and was not looked at yet; else nil.
func (s *State) lookable(r *Run, w *Spec, st *Step) []string {
	if !r.view(w).of[st.place].due {
		return nil
	}
	var pins []string
	for _, n := range st.ExtNeeds {
		o := s.index.newest(n.Workflow, r)
		if o == nil || !o.Current(n.Step).Done() {
			return nil
		}
		pins = append(pins, fmt.Sprintf("%s/%s#%d", o.ID, n.Step, o.Current(n.Step).N))
	}
	if slices.Equal(r.Met[st.ID], pins) {
		return nil
	}
	return pins
}
