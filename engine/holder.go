package engine

// Holder is what occupies a worktree: a step of a run, and its gate if the review is at work or
// due.
type Holder struct {
	Run, Step, Gate string
	Paused          bool // the run is paused
}

// Taken is what is unavailable now.
type Taken struct {
	Trees map[string]Holder // worktrees (Attempt.Tree) and their holders
	Slots int               // slots of Config.MaxParallel in use
}

// Taken returns the holder of each worktree and the slots in use, which ready steps wait for. It
// looks at all live runs.
func (s *State) Taken(specs Specs) Taken {
	out := Taken{Trees: map[string]Holder{}}
	take := func(tree string, h Holder) {
		if _, taken := out.Trees[tree]; !taken && tree != "" {
			out.Trees[tree] = h
		}
	}
	for _, r := range s.index.holding {
		for _, p := range r.Procs {
			h := Holder{Run: r.ID, Step: p.Step, Gate: p.Gate, Paused: r.Paused}
			if q := r.CurrentRound(p.Gate); p.Gate != "" && q != nil {
				h.Step = q.Step
			}
			take(p.Tree, h)
			if p.Kind == ProcStep || p.Kind == ProcReview {
				out.Slots++
			}
		}
	}
	for _, r := range s.index.holding { // after those at work in one
		if r.Phase != RunRunning {
			continue
		}
		w := specs.Of(r.Digest)
		for _, a := range r.alive {
			o := occupied{holds: map[string]bool{}, next: map[string]bool{}}
			if w == nil {
				o.holdUnread(r)
			} else {
				o.hold(r, a)
			}
			kept := w != nil && a.Holds() != "" && a.keeps(w.Step(a.step), r.Rounds)
			if !o.holds[a.Tree] && !o.next[a.Tree] && !kept {
				continue
			}
			h := Holder{Run: r.ID, Step: a.step, Paused: r.Paused}
			if q := r.roundOver(a); q != nil && q.State == OnReview {
				h.Gate = q.gate
			}
			take(a.Tree, h)
		}
	}
	return out
}
