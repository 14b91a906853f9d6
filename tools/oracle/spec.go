// Package oracle is for tests only: it is the design's own executable model of the run semantics (steps, gates, counts,
// joins, going back, limits, pause, retry), cut down to what one compares the engine with. The engine and the model are
// fed the same random histories and have to agree after every event.
//
// It was written before the engine and shares nothing with it: its shape, its names and its shortcuts (facts are
// applied as they are decided, no clock, no files) are its own. Do not make it follow the engine: where the two
// differ, the law decides which of them is wrong.
//
// Differences from the design's model, each because the law says so: a person's failure that is the m-th leaves the gate to
// people, as document 004 has it; a step that starts by `needs: []` is named in
// Spec.Starts; a gate without a person after exhaustion may end the run (implicit gates); a reopened run gets a new
// allowance only if the limit ended it, forgets which step ended it, and may be one that a limit ended before that step
// had started; a person's retry also gives the gates below
// their on_exhausted step back; a worktree is kept from the step to its verdict without a gap also against an older
// review that had let go of it; a step that only looks holds none, and the review of work that was taken whole neither waits for
// one nor holds it. Withheld names what the engine may not launch yet for reasons the model does not know:
// a file that is owed first (a run is not completed before it either), a backoff.
package oracle

import (
	"cmp"
	"maps"
	"slices"
)

// Step is a step of the model's spec.
type Step struct {
	ID      string
	Gates   []string // in a row; at least one
	Needs   []string
	Ext     string // a need on another workflow; "" = none
	When    bool   // has a `when`
	WT      string
	Reads   bool // it only looks at WT, at what was taken there last
	Apart   bool // its work is taken whole: its reviewers look at that
	Retries int
}

// Gate is a gate of the model's spec.
type Gate struct {
	ID, Step string
	Level    string   // auto, notify, human
	OnPass   []string // of the last gate of a row only
	OnFail   string
	Routes   map[string]string
	M        int
	OnExh    string // human, pass, fail, abort or a step
}

// Spec is a workflow as the model reads it.
type Spec struct {
	Order      []string
	Steps      map[string]*Step
	Gates      map[string]*Gate
	Starts     map[string]bool // steps with `needs: []`
	MaxSteps   int             // 0 = none
	LimitHuman bool
	Skip       func(step string, n int) bool // the value of `when`, negated

	fwd   map[string][]string        // forward edges
	down  map[string]map[string]bool // strictly downstream
	sure  map[string][]string        // forward edges of passes and needs
	start map[string]bool
	nonly map[string]bool // led to by its needs alone
}

func isEnd(s string) bool { return s == "DONE" || s == "FAILED" || s == "ABORTED" }

// Derive builds the forward graph; false = a load error (a cycle of passes, a step nothing reaches).
func (w *Spec) Derive() bool {
	w.fwd, w.start, w.nonly = map[string][]string{}, map[string]bool{}, map[string]bool{}
	in := map[string]int{} // forward edges but needs
	add := func(a, b string) { w.fwd[a] = append(w.fwd[a], b) }
	for _, id := range w.Order {
		s := w.Steps[id]
		for _, n := range s.Needs {
			add(n, id)
		}
		for _, t := range w.Gates[s.Gates[len(s.Gates)-1]].OnPass {
			if !isEnd(t) {
				add(id, t)
				in[t]++
			}
		}
	}
	w.sure = map[string][]string{}
	for a, bs := range w.fwd {
		w.sure[a] = append([]string{}, bs...)
	}
	if !w.close() || !w.sideways(in) {
		return false
	}
	seen := map[string]bool{}
	for i, id := range w.Order {
		s := w.Steps[id]
		w.nonly[id] = i > 0 && in[id] == 0 && len(s.Needs) > 0
		w.start[id] = i == 0 || in[id] == 0 && w.Starts[id]
	}
	for _, id := range w.Order {
		if w.start[id] || w.nonly[id] {
			w.reach(id, seen)
		}
	}
	return len(seen) == len(w.Order)
}

// sideways reads fail, routes and on_exhausted, in file order: back if it leads upstream, else forward.
func (w *Spec) sideways(in map[string]int) bool {
	for _, id := range w.Order {
		for _, g := range w.Steps[id].Gates {
			for _, t := range w.Gates[g].others() {
				if w.Steps[t] != nil && t != id && !w.down[t][id] {
					w.fwd[id] = append(w.fwd[id], t)
					in[t]++
					if !w.close() {
						return false
					}
				}
			}
		}
	}
	return true
}

func (w *Spec) reach(id string, seen map[string]bool) {
	if seen[id] {
		return
	}
	seen[id] = true
	for _, t := range w.fwd[id] {
		w.reach(t, seen)
	}
	for _, g := range w.Steps[id].Gates {
		for _, t := range w.Gates[g].others() {
			if w.Steps[t] != nil {
				w.reach(t, seen)
			}
		}
	}
}

func (g *Gate) others() []string {
	out := []string{g.OnFail}
	for _, k := range slices.Sorted(maps.Keys(g.Routes)) {
		out = append(out, g.Routes[k])
	}
	return append(out, g.OnExh)
}

func (w *Spec) close() bool {
	w.down = map[string]map[string]bool{}
	for _, id := range w.Order {
		m := map[string]bool{}
		var walk func(string)
		walk = func(x string) {
			for _, t := range w.fwd[x] {
				if !m[t] {
					m[t] = true
					walk(t)
				}
			}
		}
		walk(id)
		if m[id] {
			return false
		}
		w.down[id] = m
	}
	return true
}

// topo lists the steps, upstream first.
func (w *Spec) topo() []string {
	out := append([]string{}, w.Order...)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(w.down[b]), len(w.down[a])) })
	return out
}
