package engine

import (
	"slices"
	"strconv"
)

// What a Write does that is no file. It is about the branch of a run's own worktree.
const (
	WriteAdvance = "advance" // the branch moves to what was taken of attempt N of Step
	WriteRewind  = "rewind"  // the branch moves back to before attempt N of Step, which a person has vetoed since
	WriteLand    = "land"    // what is on it goes where OnDone says
)

// taken reports whether the work of an attempt was taken as a commit, for the run's own branch. Who only looked has none.
func (r *Run) taken(a *Attempt) bool { return r.Workspace != "" && a.Content != "" && !a.Reads }

// onBranch are the attempts of the step, and of all that follows from it, whose work may stand on the branch, the last first:
// they have passed, or their child runs may have.
func (r *Run) onBranch(w *Spec, step string) (out []*Attempt) {
	in := r.follows(w, step)
	for _, st := range slices.Backward(w.graph.topo) {
		a := r.Current(st.ID)
		if r.Workspace == "" || a == nil || st.ID != step && !in[st.ID] {
			continue
		}
		if a.Children || a.State == Passed && r.taken(a) {
			out = append(out, a)
		}
	}
	return out
}

// takeBack owes the rewinding of branches over attempts that were vetoed late: one move for each worktree, to before the
// last of its attempts. The files of the run's own worktree go back too, where nobody else is at work among them.
func (d *decider) takeBack(r *Run, vetoed []*Attempt) {
	for i, a := range vetoed {
		in := func(o *Attempt) bool { return o.Tree == a.Tree }
		if slices.ContainsFunc(vetoed[i+1:], in) {
			continue
		}
		f := RewindOwed{of: Of(r.ID), Step: a.step, N: a.N}
		for _, o := range vetoed[:i] {
			if in(o) {
				f.With = append(f.With, o.step+"."+strconv.Itoa(o.N))
			}
		}
		f.Files = a.Tree == r.Workspace && !slices.ContainsFunc(d.s.family(r), func(k *Run) bool {
			return d.s.needed(k) && slices.ContainsFunc(k.alive, func(o *Attempt) bool {
				return in(o) && !o.Reads && !o.Children && o.Live() && (o.State != Ready || o.Held != nil)
			})
		})
		d.put(f)
	}
}

// lands reports whether the run's end waits for its landing, and owes it.
func (d *decider) lands(r *Run, w *Spec) bool {
	if r.Landing || w.OnDone == (OnDone{}) || r.Workspace == "" || r.Child != nil || r.Stubbed() {
		return false
	}
	d.put(LandingOwed{of: Of(r.ID), ID: r.ID + "/land-" + strconv.FormatInt(d.s.Clock, 10)})
	return true
}
