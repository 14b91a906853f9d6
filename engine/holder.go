package engine

// Holder is what occupies a worktree: a step of a run, and its gate if the review is at work or
// due.
type Holder struct {
	Run, Step, Gate string
	Paused          bool // the run is paused
}

// Taken is what is unavailable now: worktrees (Attempt.Tree) and slots.
type Taken struct {
	holds map[string]claim // in use
	next  map[string]claim // reserved for a successor: no other step may start
	kept  map[string]claim // kept by this attempt from its signal to its verdict
	Slots int              // slots of Config.MaxParallel in use
}

// claim is what occupies a worktree: a process or an attempt of a run.
type claim struct {
	r *Run
	p *Proc
	a *Attempt
}

func nothingTaken() Taken {
	return Taken{holds: map[string]claim{}, next: map[string]claim{}, kept: map[string]claim{}}
}

// Taken returns what ready steps wait for. It looks at all live runs.
func (s *State) Taken(specs Specs) Taken {
	out := nothingTaken()
	(&draft{s: s, specs: specs}).occupy(&out)
	return out
}

// Holder returns what occupies a worktree; ok is false if nothing does.
func (t Taken) Holder(tree string) (h Holder, ok bool) {
	var c claim
	for _, trees := range []map[string]claim{t.kept, t.next, t.holds} { // what is at work there comes last
		if x, taken := trees[tree]; taken {
			c = x
		}
	}
	switch {
	case c.r == nil || tree == "":
		return h, false
	case c.p != nil:
		h = Holder{Step: c.p.Step, Gate: c.p.Gate}
	default:
		h.Step = c.a.step
		if q := c.r.roundOver(c.a); q != nil && q.State == OnReview {
			h.Gate = q.gate
		}
	}
	h.Run, h.Paused = c.r.ID, c.r.Paused
	return h, true
}
