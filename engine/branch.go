package engine

import (
	"slices"
	"strconv"
)

// Kinds of Write that act on the branch of a run's own worktree instead of a file.
const (
	WriteAdvance = "advance" // move the branch to the commit taken of attempt N of Step
	WriteRewind  = "rewind"  // move it back to before attempt N of Step, which a person has since vetoed
	WriteLand    = "land"    // bring the branch's commits where OnDone names
)

// taken reports whether the attempt's work was taken as a commit for the run's own branch. Attempts
// that only read have none.
func (r *Run) taken(a *Attempt) bool { return r.Workspace != "" && a.Content != "" && !a.Reads }

// onBranch returns the attempts of the step and its successors whose work may be on the branch,
// last first: those that passed, and those with child runs.
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

// takeBack owes the rewinding of branches after late vetoes: one move per worktree, to before the
// last of its attempts. Files of the run's own worktree are restored too unless others still work
// there.
func (d *ending) takeBack(r *Run, vetoed []*Attempt) {
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

// lands owes the run's landing if there is one, and reports whether its end must wait for it.
func (d *ending) lands(r *Run, w *Spec) bool {
	if r.Landing || w.OnDone.Land == "" && !w.OnDone.Close || r.Workspace == "" || r.Child != nil || r.Stubbed() {
		return false
	}
	d.put(LandingOwed{of: Of(r.ID), ID: r.ID + "/land-" + strconv.FormatInt(d.s.Clock, 10)})
	return true
}
