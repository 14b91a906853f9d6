package daemon

import (
	"slices"

	"sluice/engine"
)

// MaxChildSteps is the most child-run steps in a run's status: the newest.
const MaxChildSteps = 5000

// childSteps returns the judged steps of a run's descendants, with only the subject and result of
// each round. Rounds of an undone step of the parent are undone too.
func childSteps(c *core, r *engine.Run) (out []StepStatus) {
	for _, id := range c.state.Order {
		k := c.state.Runs[id]
		part, stands := partOf(c.state, k, r)
		if !part {
			continue
		}
		spec := c.spec(k.Digest)
		if spec == nil {
			continue
		}
		for _, st := range spec.Steps {
			x := StepStatus{ID: id + "/" + st.ID}
			judged := false
			for _, g := range st.Gates {
				gate := GateStatus{ID: g, Implicit: spec.Gate(g).Implicit}
				for _, q := range k.Rounds[g] {
					o := engine.Round{N: q.N, Step: q.Step, Attempt: q.Attempt, State: q.State, Outcome: q.Outcome,
						ByKind: q.ByKind, By: copied(q.By), Digest: q.Digest}
					if !stands {
						o.State = engine.Undone
					}
					gate.Rounds = append(gate.Rounds, o)
				}
				judged = judged || len(gate.Rounds) > 0
				x.Gates = append(x.Gates, gate)
			}
			if a := k.Current(st.ID); judged && a != nil {
				x.State, x.Attempt, x.Worktree = a.State, a.N, a.Worktree
				out = append(out, x)
			}
		}
	}
	if over := len(out) - MaxChildSteps; over > 0 {
		out = slices.Clone(out[over:])
	}
	return out
}

// partOf reports whether k descends from r, and whether all the steps it was started for still
// stand.
func partOf(s *engine.State, k, r *engine.Run) (part, stands bool) {
	stands = true
	for k != r {
		up := s.Parent(k)
		if up == nil {
			return false, false
		}
		a := up.Current(k.Child.Step)
		stands = stands && a != nil && a.N == k.Child.N && a.State != engine.Superseded
		part, k = true, up
	}
	return part, stands
}
