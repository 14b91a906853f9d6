package engine

import (
	"slices"
	"time"
)

// index makes an event cost what it touches instead of the whole state. It follows from the
// exported fields: only Apply writes it, snapshots omit it, and rebuild recreates it. Tests check
// it after every event of the random histories (indexFault).
type index struct {
	runs      int                  // how many were ever started: the next one's place
	live      list                 // live runs
	pending   list                 // of these, those that have not begun
	afoot     list                 // those live or with a process
	holding   list                 // those with an attempt or a process that may hold a worktree or a slot
	wanting   list                 // those with something that may want to be launched
	closing   list                 // those with a grace or a window, which a full scan closes
	workflows map[string]*workflow // by id
	kin       map[string]*list     // live runs by digest of the spec

	last    *Run      // the run of the last fact
	untimed []*Run    // those whose next moment must be recomputed
	wakes   wakes     // the others that have one, as of woke
	woke    time.Time // the last argument of Wake

	again list  // Decide's buffer
	trees Taken // schedule's buffer

	watched bool // somebody asks for changes: record them
	crossed bool // something that other workflows may wait for has changed
	changed struct {
		runs           []*Run
		moves, notices []string
		armed          []string
		out            []Debtor
	}
}

// workflow is the runs of one workflow.
type workflow struct{ live, ended list }

// list is runs in order of start.
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

// keep adds or removes the run; in records whether it is in the list.
func (l *list) keep(r *Run, in *bool, want bool) {
	if *in != want {
		*in = want
		l.change(r, want)
	}
}

// change adds or removes the run.
func (l *list) change(r *Run, in bool) {
	if in {
		l.add(r)
	} else {
		l.drop(r)
	}
}

// runIndex is the index's part in a run.
type runIndex struct {
	seq   int        // its place among all runs
	flow  *workflow  // the runs of its workflow
	alive []*Attempt // the attempts at work, in order of start
	open  []*Round   // the undecided rounds, in order of opening
	joins view       // the law of joins applied, if drawn
	drawn bool       // joins is up to date
	in    struct{ live, pending, afoot, holding, wanting, closing, untimed, changed bool }
	next  time.Time // its next moment, unless in untimed
	slot  int       // its position in wakes, from 1; 0 = absent
	by    time.Time // there: it has no moment before
	kids  list      // its child runs that are live or have a process, in order of start
}

// roundOver returns the open round over the attempt, or nil.
func (x *runIndex) roundOver(a *Attempt) *Round {
	return find(x.open, func(q *Round) bool { return q.Step == a.step && q.Attempt == a.N })
}

// ofStep counts the live children of an attempt.
func (x *runIndex) ofStep(a *Attempt) (n int) {
	for _, k := range x.kids {
		if k.Child.Step == a.step && k.Child.N == a.N {
			n++
		}
	}
	return n
}

// rebuild recreates the index from the exported fields.
func (s *State) rebuild() {
	s.index = index{workflows: map[string]*workflow{}, kin: map[string]*list{}, trees: nothingTaken()}
	for _, id := range s.Order {
		r := s.Runs[id]
		if r == nil { // a changed snapshot: Fault reports it
			continue
		}
		s.index.enter(r)
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

// LiveRuns returns the live runs in order of start. The list belongs to the state: it is valid
// until the next fact and must not be changed.
func (s *State) LiveRuns() []*Run { return s.index.live }

// flowKey returns the run's key in workflows: for a child, its parent's id and "/", which no
// workflow id contains.
func (r *Run) flowKey() string {
	if r.Child != nil {
		return r.Child.Parent + "/"
	}
	return r.Workflow
}

// Children returns a run's child runs that are still in the state, in order of start.
func (s *State) Children(run string) []*Run {
	f := s.index.workflows[run+"/"]
	if f == nil {
		return nil
	}
	out := slices.Concat(f.live, f.ended)
	slices.SortFunc(out, func(a, b *Run) int { return a.seq - b.seq })
	return out
}

// enter adds a new run.
func (x *index) enter(r *Run) {
	x.runs++
	f := x.workflows[r.flowKey()]
	if f == nil {
		f = &workflow{}
		x.workflows[r.flowKey()] = f
	}
	r.runIndex = runIndex{seq: x.runs, flow: f}
	f.ended.add(r)
}

// leave removes a forgotten run.
func (x *index) leave(r *Run) {
	if r.flow.ended.drop(r); len(r.flow.live)+len(r.flow.ended) == 0 {
		delete(x.workflows, r.flowKey())
	}
	x.afoot.keep(r, &r.in.afoot, false)
	x.holding.keep(r, &r.in.holding, false)
	x.wakes.drop(r)
	x.untimed = slices.DeleteFunc(x.untimed, func(o *Run) bool { return o == r })
	x.last = nil
}

// reindex updates the index for a run that a fact has touched.
func (s *State) reindex(r *Run) {
	x := &s.index
	r.alive = slices.DeleteFunc(r.alive, func(a *Attempt) bool { return !a.Live() })
	r.open = slices.DeleteFunc(r.open, func(q *Round) bool { return !q.Open() })
	live := r.Live()
	if live != r.in.live {
		x.turn(r, live)
	}
	holding, wanting, closing := len(r.Procs) > 0 || len(r.rewinds()) > 0, false, false
	if r.Phase == RunRunning {
		holds, wants, closes := r.needs()
		holding, wanting, closing = holding || holds, wants, closes
	}
	x.pending.keep(r, &r.in.pending, r.Phase == RunPending)
	afoot := live || len(r.Procs) > 0
	if o := s.Parent(r); o != nil && afoot != r.in.afoot {
		o.kids.change(r, afoot)
	}
	x.afoot.keep(r, &r.in.afoot, afoot)
	x.holding.keep(r, &r.in.holding, holding)
	x.wanting.keep(r, &r.in.wanting, wanting)
	x.closing.keep(r, &r.in.closing, closing)
	if !r.in.untimed {
		r.in.untimed = true
		x.untimed = append(x.untimed, r)
	}
	x.change(r)
}

// turn moves a run between live and ended.
func (x *index) turn(r *Run, live bool) {
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

// needs reports whether anything of the run may hold a worktree, may want to be launched, or is
// closed by a full scan. Only a decision, which has the spec, knows for certain.
func (r *Run) needs() (holds, wants, closes bool) {
	for _, a := range r.alive {
		switch a.State {
		case Ready:
			holds, wants = true, true
		case Running:
			holds, closes = true, closes || !a.GraceUntil.IsZero()
		case Signalled:
			holds, wants = true, wants || !r.Procs.atWork(a.step)
		}
	}
	for _, q := range r.open {
		switch q.State {
		case OnReview:
			holds, wants = true, wants || r.Procs.Of(q.Key) == nil
		case OnWindow:
			closes = true
		}
	}
	return holds, wants, closes
}

// crosses reports whether the fact may unblock another run, which waits for its turn or for a step
// of this one.
func crosses(f Fact) bool {
	switch f.(type) {
	case RunBegan, RunEnded, RunForgotten, StepPassed, StepSkipped, StepSuperseded:
		return true
	}
	return false
}

// rejoins reports whether the fact may change the run's view of the law of joins.
func rejoins(f Fact) bool {
	switch f.(type) {
	case RunEnded, RunReopened, StepStarted, StepSkipped, StepPassed, StepRouted, StepSuperseded, WorkSent,
		WorkUnsent, RoundVoided:
		return true
	}
	return false
}

// view returns the law of joins applied to the run. It is cached until a fact changes it.
func (r *Run) view(w *Spec) *view {
	if !r.drawn {
		r.joins.draw(r, w)
		r.drawn = true
	}
	return &r.joins
}

// change records that what the run owes may have changed.
func (x *index) change(r *Run) {
	if x.watched && !r.in.changed {
		r.in.changed = true
		x.changed.runs = append(x.changed.runs, r)
	}
}

// changeID records in ids that a move, a notice or armed triggers may owe something else now.
func (x *index) changeID(ids *[]string, id string) {
	if x.watched {
		*ids = append(*ids, id)
	}
}

// waiting calls look for the live runs that may wait for another one.
func (x *index) waiting(specs Specs, look func(*Run)) {
	for _, r := range x.pending {
		if r.Parallel || r.flow.turn(r) {
			look(r)
		}
	}
	for digest, kin := range x.kin {
		if w := specs.Of(digest); w != nil && len(w.graph.ext) > 0 {
			for _, r := range *kin {
				look(r)
			}
		}
	}
}

// newest returns the newest started run of the workflow. A real run ignores runs that stand-ins
// played.
func (x *index) newest(workflow string, asker *Run) *Run {
	f := x.workflows[workflow]
	if f == nil {
		return nil
	}
	var out *Run
	for _, runs := range []list{f.live, f.ended} {
		for i := len(runs) - 1; i >= 0; i-- {
			if r := runs[i]; r.Phase != RunPending && (!r.Stubbed() || asker.Stubbed()) {
				if out == nil || r.N > out.N {
					out = r
				}
				break
			}
		}
	}
	return out
}

// ownLive counts the live runs without a parent.
func (x *index) ownLive() (n int) {
	for _, r := range x.live {
		if r.Child == nil {
			n++
		}
	}
	return n
}

// Changed returns whose debts may have changed since the last call, in the order of Owed; the first
// call returns all. So a caller that asks OwedBy for these always knows Owed. The result is valid
// until the next call.
func (s *State) Changed(specs Specs) []Debtor {
	x := &s.index
	c := &x.changed
	if !x.watched {
		x.watched, x.crossed = true, false
		return s.debtors()
	}
	if x.crossed {
		x.crossed = false
		x.waiting(specs, x.change)
		for id, a := range s.Armed { // their runs may have waited for a place
			if len(a.Firings) > 0 {
				x.changeID(&c.armed, id)
			}
		}
	}
	c.out = c.out[:0]
	slices.SortFunc(c.runs, func(a, b *Run) int { return a.seq - b.seq })
	for _, r := range c.runs {
		r.in.changed = false
		c.out = append(c.out, Debtor{"", r.ID})
	}
	c.out = appendDebtors(c.out, DoMove, c.moves)
	c.out = appendDebtors(c.out, DoNotify, c.notices)
	c.out = appendDebtors(c.out, DoListen, c.armed)
	c.runs, c.moves, c.notices, c.armed = c.runs[:0], c.moves[:0], c.notices[:0], c.armed[:0]
	return c.out
}

func appendDebtors(out []Debtor, kind string, ids []string) []Debtor {
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		out = append(out, Debtor{kind, id})
	}
	return out
}
