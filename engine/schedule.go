package engine

import (
	"cmp"
	"slices"
	"time"
)

// candidate is something ready to be launched.
type candidate struct {
	r    *Run
	st   *Step
	a    *Attempt
	gate string
	kind string // ProcStep, ProcReview, ProcCheck or ProcHook
	// forge: it is a review by the forge, which waits for others and so takes no slot or worktree
	forge bool
}

// tree returns the worktree that the launch would hold, or "".
func (c candidate) tree() string {
	switch {
	case c.forge:
		return ""
	case c.kind == ProcReview:
		return c.a.HeldInReview()
	}
	return c.a.Holds()
}

// outlived reports whether a process of an earlier attempt or round is still alive. With a
// worktree, the worktree itself guards against that.
func (c candidate) outlived() bool {
	if c.kind != ProcReview {
		return c.r.Procs.atWork(c.st.ID)
	}
	return slices.ContainsFunc(c.r.Procs, func(p *Proc) bool { return p.Kind == ProcReview && p.Gate == c.gate })
}

// role returns the role of the agent to launch, or "" for a command or an offer.
func (c candidate) role(w *Spec) string {
	switch {
	case c.kind == ProcReview:
		return w.Gate(c.gate).agentRole()
	case c.kind == ProcStep && !c.r.Offers(c.st):
		return c.st.agentRole()
	}
	return ""
}

// usualCandidates is the capacity that suffices for most decisions.
const usualCandidates = 4

// schedule launches what is ready, oldest first. A candidate whose worktree is taken does not block others.
func (d *decider) schedule() {
	if d.s.hold {
		return
	}
	ready := make([]candidate, 0, usualCandidates)
	for _, r := range d.s.index.wanting {
		if w := d.spec(r); w != nil {
			ready = d.collect(r, w, ready)
		}
	}
	if len(ready) == 0 {
		return
	}
	slices.SortFunc(ready, func(x, y candidate) int { return cmp.Compare(x.a.Since, y.a.Since) })
	o := &d.s.index.trees
	d.occupy(o)
	for _, c := range ready {
		tree := c.tree()
		if k := o.kept[tree].a; tree != "" && k != nil && k != c.a {
			continue // includes a later gate's review after the tree was released
		}
		if tree == "" && c.outlived() {
			continue
		}
		if d.s.launchesUp(c.r, c.role(d.spec(c.r))) {
			continue // an earlier launch in this loop took the last one; the next look at the run hits the limit
		}
		slot := c.kind == ProcReview && !c.forge || c.kind == ProcStep && !c.r.Offers(c.st)
		taken := tree != "" && (o.holds[tree].r != nil || c.kind == ProcStep && o.next[tree].r != nil)
		full := slot && o.Slots >= d.s.Config.MaxParallel
		if taken || full {
			if c.kind == ProcStep && o.holds[tree].r == nil {
				o.next[tree] = claim{r: c.r, a: c.a} // it waits for a slot: no other step may take its worktree first
			}
			continue
		}
		d.launch(c)
		o.holds[tree] = claim{r: c.r, a: c.a}
		if slot {
			o.Slots++
		}
	}
}

// occupy collects everything that holds a worktree or a slot.
func (d *draft) occupy(o *Taken) {
	clear(o.holds)
	clear(o.next)
	clear(o.kept)
	o.Slots = 0
	for _, r := range d.s.index.holding {
		for _, p := range r.Procs {
			o.holds[p.Tree] = claim{r: r, p: p}
			if (p.Kind == ProcStep || p.Kind == ProcReview) && !p.Forge {
				o.Slots++
			}
		}
		for _, a := range r.rewinds() {
			o.holds[a.Tree] = claim{r: r, a: a}
		}
		if r.Phase != RunRunning {
			continue
		}
		w := d.spec(r)
		if w == nil {
			o.holdUnread(r)
			continue
		}
		for _, a := range w.inOrder(r.alive) {
			if tree := a.Holds(); tree != "" && a.keeps(w.Step(a.step), r.Rounds) {
				o.kept[tree] = claim{r: r, a: a}
			}
			o.hold(r, a)
		}
	}
}

// hold marks the worktree that an attempt holds without a process, or is next in.
func (o *Taken) hold(r *Run, a *Attempt) {
	if a.Reads {
		return
	}
	c := claim{r: r, a: a}
	switch a.State {
	case Ready:
		if a.Held != nil { // a person works there: nothing is launched in it, not even this attempt
			o.holds[a.Tree] = c
		}
	case Running:
		if a.Children { // the children hold their own worktrees
			return
		}
		if a.Offered || r.Procs.Of(a.Key) == nil { // on offer, or in the grace after its exit
			o.holds[a.Tree] = c
		}
	case Signalled: // reserved until its gate
		o.next[a.Tree] = c
	case Gating:
		if q := r.roundOver(a); q != nil && q.State == OnReview && !a.Apart && r.Procs.Of(q.Key) == nil {
			o.next[a.Tree] = c // reserved for its review
		}
	}
}

// holdUnread marks the worktrees held without a process by a run whose spec cannot be read: offers,
// graces, attempts before their gate, pending reviews.
func (o *Taken) holdUnread(r *Run) {
	for _, a := range r.alive {
		if !a.Reads && (a.State == Running && !a.Children || a.State == Signalled || a.held()) {
			o.holds[a.Tree] = claim{r: r, a: a}
		}
	}
	for _, q := range r.open {
		if a := r.Attempt(q.Step, q.Attempt); q.State == OnReview && !a.Reads {
			o.holds[a.Tree] = claim{r: r, a: a}
		}
	}
}

// keeps reports whether the attempt has had its worktree without a gap since its launch: from its signal through
// check, hook and reviewers to the verdict. A person, a window or a voided round releases it.
func (a *Attempt) keeps(st *Step, rounds map[string][]*Round) bool {
	if a.State != Signalled && a.State != Gating {
		return false
	}
	for _, g := range st.Gates {
		for _, q := range rounds[g] {
			if q.Attempt == a.N && q.State != OnReview && (q.State != Approved || q.Level != LevelAuto && q.ByKind != "when") {
				return false
			}
		}
	}
	return true
}

func (d *decider) launch(c candidate) {
	r, w, st, a := c.r, d.spec(c.r), c.st, c.a
	until := d.at.Add(time.Duration(d.s.Config.timeout(st.Timeout, st.Role()))) // of a check or hook
	switch c.kind {
	case ProcReview:
		d.launchReview(r, w.Gate(c.gate), c.tree())
	case ProcCheck:
		key := afterKey(r.ID, st.ID, a.N, "check", d.s.Clock)
		d.put(CheckStarted{of: Of(r.ID), Step: st.ID, N: a.N, Key: key, Tree: c.tree(), Deadline: until})
	case ProcHook:
		key := afterKey(r.ID, st.ID, a.N, "hook", d.s.Clock)
		d.put(HookStarted{of: Of(r.ID), Step: st.ID, N: a.N, Key: key, Tree: c.tree(), Deadline: until})
	default:
		d.launchStep(r, st)
	}
}

// collect appends what is ready in the run.
func (d *running) collect(r *Run, w *Spec, ready []candidate) []candidate {
	for _, a := range r.alive {
		switch a.State {
		case Ready:
			if !r.Paused && len(r.Writes) == 0 && !a.NotBefore.After(d.at) {
				ready = append(ready, candidate{r: r, st: w.Step(a.step), a: a, kind: ProcStep})
			}
		case Signalled:
			if r.Procs.atWork(a.step) {
				continue
			}
			st := w.Step(a.step)
			if kind := afterWord(r, w, st, a); kind != "" {
				ready = append(ready, candidate{r: r, st: st, a: a, kind: kind})
			}
		case Gating:
			q := r.roundOver(a)
			if q != nil && q.State == OnReview && r.Procs.Of(q.Key) == nil && !r.Paused && !q.NotBefore.After(d.at) {
				ready = append(ready, candidate{r: r, st: w.Step(a.step), a: a, gate: q.gate, kind: ProcReview,
					forge: len(w.Gate(q.gate).Reviewer.Forge) > 0})
			}
		}
	}
	return ready
}

func (d *decider) launchStep(r *Run, st *Step) {
	a, c := r.Current(st.ID), d.s.Config
	f := StepLaunched{of: Of(r.ID), Step: st.ID, N: a.N, K: a.K + 1, Key: launchKey(r.ID, st.ID, a.N, a.K+1), Tree: a.Tree,
		Offered: r.Offers(st), SignalType: st.Signal.Type, SignalValue: st.Signal.Value}
	if !f.Offered {
		f.Role = st.agentRole()
		f.Deadline = d.at.Add(time.Duration(c.timeout(st.Timeout, st.Role())))
	} else if st.Timeout > 0 {
		f.Deadline = d.at.Add(time.Duration(st.Timeout))
	}
	d.put(f)
}

func (d *decider) launchReview(r *Run, g *Gate, tree string) {
	q := r.CurrentRound(g.ID)
	f := ReviewStarted{of: Of(r.ID), Gate: g.ID, N: q.N, K: q.K + 1, Key: launchKey(r.ID, g.ID, q.N, q.K+1), Tree: tree,
		Deadline: d.at.Add(time.Duration(d.s.Config.timeout(0, g.Reviewer.AgentType))), Role: g.agentRole(),
		Forge: len(g.Reviewer.Forge) > 0}
	if f.Forge { // only the gate's own timeout limits it: others work there at their own pace
		if f.Deadline = (time.Time{}); g.Timeout > 0 {
			f.Deadline = d.at.Add(time.Duration(g.Timeout))
		}
	}
	d.put(f)
}
