package daemon

import (
	"slices"
	"strings"

	"sluice/engine"
)

// MaxUnpassed bounds the let-through rounds in a run's status: each of thousands of tasks may have
// some.
const MaxUnpassed = 100

// unpassed adds to each run what went on without a pass, in it and in its tasks' runs.
func (s *Status) unpassed(c *core) {
	at := make(map[string]int, len(s.Runs))
	for i := range s.Runs {
		at[s.Runs[i].ID] = i
	}
	for _, id := range c.state.Order {
		r := c.state.Runs[id]
		var asked []int // of the run and those above it
		for o := r; o != nil; o = c.state.Parent(o) {
			if i, ok := at[o.ID]; ok {
				asked = append(asked, i)
			}
		}
		if asked == nil {
			continue
		}
		for _, x := range letThrough(r, c.spec(r.Digest)) {
			for _, i := range asked {
				if s.Runs[i].ID != id { // runs above it name whose it is
					x.Run = id
				}
				s.Runs[i].Unpassed = append(s.Runs[i].Unpassed, x)
			}
		}
	}
	for i := range s.Runs {
		u := s.Runs[i].Unpassed
		slices.SortStableFunc(u, func(a, b LetThrough) int { return a.At.Compare(b.At) })
		if over := len(u) - MaxUnpassed; over > 0 {
			s.Runs[i].Unpassed, s.Runs[i].More = slices.Clone(u[over:]), over
		}
	}
}

// letThrough lists the rounds of a run that let work go on without a pass.
func letThrough(r *engine.Run, spec *engine.Spec) (out []LetThrough) {
	if spec == nil {
		return nil
	}
	for _, st := range spec.Steps {
		for i, id := range st.Gates {
			for _, q := range r.Rounds[id] {
				if q.LetThrough == 0 {
					continue
				}
				x := LetThrough{Gate: id, Round: q.N, Outcome: q.Outcome, Route: q.Route, Times: q.Times,
					Failures: q.LetThrough, To: q.To, ByKind: q.ByKind, By: copied(q.By), At: q.Ended}
				if q.Outcome == q.Route {
					x.Failures-- // a round that takes a route does not count
				} else if q.Route != "" {
					x.Failures = 0
				}
				if x.To == "" && i+1 < len(st.Gates) {
					x.To = st.Gates[i+1]
				} else if x.To == "" {
					x.To = strings.Join(spec.Gate(id).OnPass, ", ")
				}
				out = append(out, x)
			}
		}
	}
	return out
}
