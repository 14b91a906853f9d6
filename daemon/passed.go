package daemon

import (
	"fmt"
	"slices"

	"sluice/engine"
)

// passed returns the attempts that have passed, of a run and of the runs above and below it. What
// passed in a child run is undone with the attempt that the run is part of.
func passed(s *engine.State, run *engine.Run) (out []string) {
	top := run
	for p := s.Parent(top); p != nil; p = s.Parent(p) {
		top = p
	}
	for _, id := range s.Order {
		r := s.Runs[id]
		if !standsIn(s, r, top) {
			continue
		}
		for step, as := range r.Attempts {
			for _, a := range as {
				if a.State == engine.Passed {
					out = append(out, fmt.Sprintf("%s/%s.%d", id, step, a.N))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// standsIn reports whether a run is the top one, or part of an attempt there that was not undone.
func standsIn(s *engine.State, r, top *engine.Run) bool {
	for r != top {
		p := s.Parent(r)
		if p == nil {
			return false
		}
		if a := p.Attempt(r.Child.Step, r.Child.N); !a.Live() && !a.Done() {
			return false
		}
		r = p
	}
	return true
}
