package specs

import (
	"slices"

	"gopkg.in/yaml.v3"

	"sluice/engine"
)

func (c *compiler) limits(d *limitsDoc) {
	l := &c.spec.Limits
	l.MaxSameFailure = engine.DefaultMaxSameFailure
	if d == nil {
		return
	}
	of := limiter{c: c}
	of.span("max_duration", d.MaxDuration, &l.MaxDuration)
	of.count("max_steps", d.MaxSteps, &l.MaxSteps)
	of.count("max_same_failure", d.MaxSameFailure, &l.MaxSameFailure)
	l.MaxTokens = int64(of.number("max_tokens", d.MaxTokens, 1))
	l.MaxCostUSD = of.number("max_cost_usd", d.MaxCostUSD, 0)
	l.MaxFailedRatio = of.ratio(d.MaxFailedRatio)
	if d.Roles == nil {
		return
	}
	l.Roles = map[string]engine.Spend{}
	for _, r := range d.Roles.items {
		of, s := limiter{c: c, at: "roles." + r.name + "."}, engine.Spend{}
		of.span("max_duration", r.doc.MaxDuration, &s.Time)
		of.count("max_launches", r.doc.MaxLaunches, &s.Launches)
		s.Tokens = int64(of.number("max_tokens", r.doc.MaxTokens, 1))
		s.CostUSD = of.number("max_cost_usd", r.doc.MaxCostUSD, 0)
		l.Roles[r.name] = s
	}
}

// limitedRoles checks that each role with a limit is used in the workflow. It runs after the steps
// and gates.
func (c *compiler) limitedRoles(d *limitsDoc) {
	if d == nil || d.Roles == nil {
		return
	}
	known := agentRoles(c.spec)
	for _, r := range d.Roles.items {
		if !slices.Contains(known, r.name) {
			c.at(r.key, "workflow: limits: roles: no step or gate of this workflow has the role %s%s", quote(r.name),
				c.oneOf(r.name, known))
		}
	}
}

// agentRoles returns the roles that agents have in a workflow and its child runs, in order.
func agentRoles(spec *engine.Spec) []string {
	var out []string
	for _, w := range spec.All() {
		for _, st := range w.Steps {
			if st.Run == nil && st.Role() != "" {
				out = append(out, st.Role())
			}
		}
		for _, g := range w.Gates {
			if g.Reviewer.AgentType != "" {
				out = append(out, g.Reviewer.AgentType)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// limiter compiles the limits of a run or of one of its roles.
type limiter struct {
	c  *compiler
	at string // before each key: "roles.NAME." of a role
}

func (l limiter) what(key string) string { return "workflow: limits: " + l.at + key }

// hit records what happens when the limit is reached.
func (l limiter) hit(key string, t scalar) {
	to := &l.c.spec.Limits
	if !t.set() {
		return
	}
	if to.OnHit == nil {
		to.OnHit = map[string]string{}
	}
	to.OnHit[l.at+key] = t.value
}

// positive reports a limit of 0: nothing could ever run.
func (l limiter) positive(n *yaml.Node, ok bool, key string) {
	if n != nil && !ok {
		l.c.at(n, "%s is 0: give it a value or remove the key", l.what(key))
	}
}

func (l limiter) span(key string, d *spanLimit, to *engine.Duration) {
	if d == nil || !d.max.set() {
		return
	}
	*to = l.c.span(d.max, l.what(key))
	l.positive(d.max.node, *to > 0 || d.max.texpr != "", key)
	l.hit(key, d.onHit)
}

func (l limiter) count(key string, d *countLimit, to *int) {
	if d == nil || !d.max.set() {
		return
	}
	l.c.count(d.max, 1, maxCount, l.what(key), to)
	l.hit(key, d.onHit)
}

// number returns a limit that is more than 0, and at least least.
func (l limiter) number(key string, d *numberLimit, least float64) float64 {
	if d == nil || d.max.node == nil {
		return 0
	}
	f, ok := l.c.number(d.max, l.what(key))
	if ok {
		l.positive(d.max.node, f > 0 && f >= least, key)
	}
	l.hit(key, d.onHit)
	return f
}

// ratio returns the limit over a list's tasks.
func (l limiter) ratio(d *numberLimit) float64 {
	const key = "max_failed_ratio"
	f := l.number(key, d, 0)
	if f > 1 {
		l.c.at(d.max.node, "%s: %v is more than 1: it is the part of the tasks that may fail, as 0.5", l.what(key), f)
	}
	lists := func(s *stepDoc) bool { return s.ForEach != nil }
	if d != nil && d.max.node != nil && !slices.ContainsFunc(l.c.doc.Steps, lists) {
		l.c.at(d.max.node, "%s counts the tasks of a for_each, and no step has one", l.what(key))
	}
	return f
}
