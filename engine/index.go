package engine

import (
	"slices"
	"time"
)

// index is what the state knows of itself beside its exported fields, so that an event costs what it touches and not all
// that the state holds. All of it follows from those fields: Apply alone writes it, a snapshot leaves it out, and rebuild
// makes it again. Whether it is right is asked after every event of the random histories (indexFault).
type index struct {
	runs      int                  // how many were ever started: the next one's place
	live      list                 // the runs that live
	pending   list                 // of these, those that have not begun
	afoot     list                 // those that live or have a process
	holding   list                 // those with an attempt or a process that may hold a worktree or a slot
	wanting   list                 // those with something that may want to be launched
	closing   list                 // those with a grace or a window, which a whole scan closes
	workflows map[string]*workflow // by id
	kin       map[string]*list     // by digest of the spec: those that live

	last    *Run      // the run of the last fact
	untimed []*Run    // those whose next moment is to be found anew
	wakes   wakes     // the others that have one, as it is after woke
	woke    time.Time // what Wake was asked with last

	again list     // Decide's own, and
	trees occupied // schedule's own, kept so as not to be made anew for each decision

	watched bool // somebody asks for what has changed: it is noted
	crossed bool // something that other workflows may wait for has changed
	changed struct {
		runs           []*Run
		moves, notices []string
		out            []Debtor
	}
}

// workflow is the runs of one workflow.
type workflow struct{ live, ended list }

// list is runs in the order they were started.
type list []*Run

func (l list) find(r *Run) (int, bool) {
	return slices.BinarySearchFunc(l, r.seq, func(o *Run, seq int) int { return o.seq - seq })
}

func (l *list) add(r *Run) {
	if i, there := l.find(r); !there {
		*l = slices.Insert(*l, i, r)
	}
}

func (l *list) drop(r *Run) {
	if i, there := l.find(r); there {
		*l = slices.Delete(*l, i, i+1)
	}
}

// keep takes the run into the list or out of it; in says whether it is there.
func (l *list) keep(r *Run, in *bool, want bool) {
	if *in == want {
		return
	}
	if *in = want; want {
		l.add(r)
	} else {
		l.drop(r)
	}
}

// change takes the run into the list, or out of it.
func (l *list) change(r *Run, in bool) {
	if in {
		l.add(r)
	} else {
		l.drop(r)
	}
}

// runIndex is what the index keeps at a run.
type runIndex struct {
	seq   int        // its place among all runs
	flow  *workflow  // the runs of its workflow
	alive []*Attempt // the attempts at work, as they were started
	open  []*Round   // the rounds not decided, as they were opened
	joins view       // what the law of joins says, where it is drawn
	drawn bool       // no fact has changed it since
	in    struct{ live, pending, afoot, holding, wanting, closing, untimed, changed bool }
	next  time.Time // its next moment, where it is not among the untimed
	slot  int       // where it lies in wakes, from 1; 0 = not there
	kids  list      // its child runs that live or have a process, in the order they were started
}

// rebuild makes the index from the exported fields.
func (s *State) rebuild() {
	s.index = index{workflows: map[string]*workflow{}, kin: map[string]*list{},
		trees: occupied{holds: map[string]bool{}, next: map[string]bool{}, kept: map[string]*Attempt{}}}
	for _, id := range s.Order {
		r := s.Runs[id]
		if r == nil { // a changed snapshot: Fault tells
			continue
		}
		s.enter(r)
		for _, step := range sortedKeys(r.Attempts) {
			for _, a := range r.Attempts[step] {
				if a.step = step; a.Live() {
					r.alive = append(r.alive, a)
				}
			}
		}
		for _, gate := range sortedKeys(r.Rounds) {
			for _, q := range r.Rounds[gate] {
				if q.gate = gate; q.Open() {
					r.open = append(r.open, q)
				}
			}
		}
		s.reindex(r)
		slices.SortFunc(r.alive, func(a, b *Attempt) int { return int(a.Since - b.Since) })
		slices.SortFunc(r.open, func(a, b *Round) int { return int(a.Seq - b.Seq) })
	}
}

// LiveRuns returns the runs that live, in the order they were started. The list is the state's own: it is good until the
// next fact, and not to be changed.
func (s *State) LiveRuns() []*Run { return s.index.live }

// flowKey is the name under which the run is found: of a child, its parent's. No workflow's id has a "/".
func (r *Run) flowKey() string {
	if r.Child != nil {
		return r.Child.Parent + "/"
	}
	return r.Workflow
}

// Children returns the child runs of a run that are still in the state, in the order they were started.
func (s *State) Children(run string) []*Run {
	f := s.index.workflows[run+"/"]
	if f == nil {
		return nil
	}
	out := slices.Concat(f.live, f.ended)
	slices.SortFunc(out, func(a, b *Run) int { return a.seq - b.seq })
	return out
}

// enter gives a new run its place.
func (s *State) enter(r *Run) {
	x := &s.index
	x.runs++
	f := x.workflows[r.flowKey()]
	if f == nil {
		f = &workflow{}
		x.workflows[r.flowKey()] = f
	}
	r.runIndex = runIndex{seq: x.runs, flow: f}
	f.ended.add(r)
}

// leave takes a forgotten run out.
func (s *State) leave(r *Run) {
	x := &s.index
	if r.flow.ended.drop(r); len(r.flow.live)+len(r.flow.ended) == 0 {
		delete(x.workflows, r.flowKey())
	}
	x.afoot.keep(r, &r.in.afoot, false)
	x.holding.keep(r, &r.in.holding, false)
	x.wakes.drop(r)
	x.untimed = slices.DeleteFunc(x.untimed, func(o *Run) bool { return o == r })
	x.last = nil
}

// reindex brings the index in line with a run that a fact has touched.
func (s *State) reindex(r *Run) {
	x := &s.index
	r.alive = slices.DeleteFunc(r.alive, func(a *Attempt) bool { return !a.Live() })
	r.open = slices.DeleteFunc(r.open, func(q *Round) bool { return !q.Open() })
	live := r.Live()
	if live != r.in.live {
		s.turn(r, live)
	}
	holding, wanting, closing := len(r.Procs) > 0 || len(r.rewinds()) > 0, false, false
	if r.Phase == RunRunning {
		holds, wants, closes := r.needs()
		holding, wanting, closing = holding || holds, wants, closes
	}
	x.pending.keep(r, &r.in.pending, r.Phase == RunPending)
	if up := live || len(r.Procs) > 0; up != r.in.afoot {
		if o := s.Parent(r); o != nil {
			o.kids.change(r, up)
		}
	}
	x.afoot.keep(r, &r.in.afoot, live || len(r.Procs) > 0)
	x.holding.keep(r, &r.in.holding, holding)
	x.wanting.keep(r, &r.in.wanting, wanting)
	x.closing.keep(r, &r.in.closing, closing)
	if !r.in.untimed {
		r.in.untimed = true
		x.untimed = append(x.untimed, r)
	}
	x.change(r)
}

// turn moves a run between those that live and those that are over.
func (s *State) turn(r *Run, live bool) {
	x := &s.index
	r.in.live = live
	f, kin := r.flow, x.kin[r.Digest]
	if !live {
		x.live.drop(r)
		f.live.drop(r)
		f.ended.add(r)
		if kin.drop(r); len(*kin) == 0 {
			delete(x.kin, r.Digest)
		}
		return
	}
	if kin == nil {
		kin = &list{}
		x.kin[r.Digest] = kin
	}
	x.live.add(r)
	f.ended.drop(r)
	f.live.add(r)
	kin.add(r)
}

// needs reports whether anything of the run may hold a worktree, whether anything may want to be launched, and whether a
// whole scan closes something. Only a decision, which has the spec, knows for certain.
func (r *Run) needs() (holds, wants, closes bool) {
	for _, a := range r.alive {
		switch a.State {
		case Ready:
			holds, wants = true, true
		case Running:
			holds, closes = true, closes || !a.GraceUntil.IsZero()
		case Signalled:
			holds, wants = true, wants || !r.atWork(a.step)
		}
	}
	for _, q := range r.open {
		switch q.State {
		case OnReview:
			holds, wants = true, wants || r.Proc(q.Key) == nil
		case OnWindow:
			closes = true
		}
	}
	return holds, wants, closes
}

// crosses reports whether the fact may let another run go on: one that waits for its turn, or for a step of this one.
func crosses(f Fact) bool {
	switch f.(type) {
	case RunBegan, RunEnded, RunForgotten, StepPassed, StepSkipped, StepSuperseded:
		return true
	}
	return false
}

// rejoins reports whether the fact may change what the law of joins says of the run's steps.
func rejoins(f Fact) bool {
	switch f.(type) {
	case RunEnded, RunReopened, StepStarted, StepSkipped, StepPassed, StepRouted, StepSuperseded, WorkSent, WorkUnsent, RoundVoided:
		return true
	}
	return false
}

// view returns what the law of joins says of the run now. It is drawn once, and again when a fact has changed what it is
// drawn from.
func (r *Run) view(w *Spec) *view {
	if !r.drawn {
		r.joins.draw(r, w)
		r.drawn = true
	}
	return &r.joins
}

// change notes that what the run owes may have changed.
func (x *index) change(r *Run) {
	if x.watched && !r.in.changed {
		r.in.changed = true
		x.changed.runs = append(x.changed.runs, r)
	}
}

func (x *index) changeMove(id string) {
	if x.watched {
		x.changed.moves = append(x.changed.moves, id)
	}
}

func (x *index) changeNotice(id string) {
	if x.watched {
		x.changed.notices = append(x.changed.notices, id)
	}
}

// waiting calls look for the live runs that may wait for another one.
func (s *State) waiting(specs Specs, look func(*Run)) {
	for _, r := range s.index.pending {
		if r.Parallel || r.flow.live[0] == r { // else one before it lives
			look(r)
		}
	}
	for digest, kin := range s.index.kin {
		if w := specs.Of(digest); w != nil && len(w.graph.ext) > 0 {
			for _, r := range *kin {
				look(r)
			}
		}
	}
}

// Changed returns whose debts may have changed since it was asked last, in the order of Owed; at first, all. So who asks
// for no more than OwedBy of these knows Owed at any time. The answer is good until the next question.
func (s *State) Changed(specs Specs) []Debtor {
	x := &s.index
	c := &x.changed
	if !x.watched {
		x.watched, x.crossed = true, false
		return s.debtors()
	}
	if x.crossed {
		x.crossed = false
		s.waiting(specs, x.change)
	}
	c.out = c.out[:0]
	slices.SortFunc(c.runs, func(a, b *Run) int { return a.seq - b.seq })
	for _, r := range c.runs {
		r.in.changed = false
		c.out = append(c.out, Debtor{"", r.ID})
	}
	c.out = appendDebtors(c.out, DoMove, c.moves)
	c.out = appendDebtors(c.out, DoNotify, c.notices)
	c.runs, c.moves, c.notices = c.runs[:0], c.moves[:0], c.notices[:0]
	return c.out
}

func appendDebtors(out []Debtor, kind string, ids []string) []Debtor {
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		out = append(out, Debtor{kind, id})
	}
	return out
}
