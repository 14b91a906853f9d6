package stats

import (
	"maps"
	"slices"
	"time"

	"sluice/engine"
)

// undone ends open rounds of the step ("" = all): their waiting for a person counts.
func (c *Counter) undone(r *run, step string, at time.Time) {
	for _, id := range slices.Sorted(maps.Keys(r.rounds)) {
		if q := r.rounds[id]; step == "" || q.step == step {
			c.decided(r, c.gate(r, id), id, at)
		}
	}
}

func (c *Counter) ofGate(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.RoundOpened:
		if r.implicit[f.Gate] = f.Gate == f.Step; !r.implicit[f.Gate] {
			r.rounds[f.Gate] = &round{step: f.Step}
		}
	case engine.GateFailed:
		if q := r.rounds[f.Gate]; f.ByKind != engine.Human {
			c.gate(r, f.Gate).Refused++
			if q != nil {
				q.failed = true
			}
		}
	case engine.Inconclusive:
		c.gate(r, f.Gate).Inconclusive++
	case engine.HumanAsked:
		if q := r.rounds[f.Gate]; q != nil && q.asked.IsZero() {
			q.asked = at
		}
	case engine.RoundPassed:
		c.passed(r, f, at)
	case engine.RoundFailed:
		c.failed(r, f, at)
	case engine.RoundRouted:
		g := c.gate(r, f.Gate)
		g.Routed++
		g.Quiet = 0
		c.decided(r, g, f.Gate, at)
	case engine.RoundVoided:
		g := c.gate(r, f.Gate)
		g.Voided++
		c.decided(r, g, f.Gate, at)
	}
}

func (c *Counter) passed(r *run, f engine.RoundPassed, at time.Time) {
	g := c.gate(r, f.Gate)
	failed := c.decided(r, g, f.Gate, at)
	r.overridden[f.Gate] = failed && f.ByKind == engine.Human
	switch {
	case f.ByKind == "when": // nothing was judged
		return
	case f.ByKind == "exhausted": // it goes on, and no gate has passed it
		g.Failed++
	default:
		g.Passed++
	}
	if r.overridden[f.Gate] {
		g.Overridden++
	}
	if g.Quiet++; failed {
		g.Quiet = 0
	}
}

func (c *Counter) failed(r *run, f engine.RoundFailed, at time.Time) {
	g := c.gate(r, f.Gate)
	g.Failed++
	switch q := r.rounds[f.Gate]; {
	case f.ByKind != engine.Human:
	case q == nil: // a late veto: the round had passed
		g.Passed--
		g.Vetoes++
		if r.overridden[f.Gate] {
			g.Overridden--
			r.overridden[f.Gate] = false
		}
	case q.asked.IsZero():
		g.Vetoes++
	}
	g.Quiet = 0
	c.decided(r, g, f.Gate, at)
}

// decided counts a round's wait for a person. It reports whether the round had failed before.
func (c *Counter) decided(r *run, g *gate, id string, at time.Time) bool {
	q := r.rounds[id]
	if q == nil {
		return false
	}
	delete(r.rounds, id)
	if !q.asked.IsZero() {
		g.people = append(g.people, since(q.asked, at))
		c.people = append(c.people, since(q.asked, at))
	}
	return q.failed
}
