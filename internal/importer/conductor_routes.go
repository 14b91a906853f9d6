package importer

import (
	"slices"
	"strings"
)

// make fills in the steps of x, and what comes after it.
func (c *conductor) make(x *place) {
	if c.err != nil {
		return
	}
	s := x.leave
	switch x.kind {
	case "agent":
		c.agent(x, x.n, s)
	case "script":
		c.script(x, s)
	case "human_gate":
		c.human(x, s)
		return
	case "questions":
		c.questions(x, s)
	case "wait":
		c.wait(x, s)
	case "terminate":
		s.next = []string{"DONE"}
		if str(get(x.n, "status")) != "success" {
			s.next = []string{"FAILED"}
		}
		s.notes = append(s.notes, "why it ends: "+str(get(x.n, "reason")))
		return
	case "workflow":
		c.child(x, x.n, s)
	case "for_each":
		c.each(x, s)
	case "set", "parallel":
	default:
		c.leave(get(x.n, "type"), "ours has no such step: a person does it")
		c.flow.byHand(s, "conductor does the step "+x.name+" here. Do it by hand.")
	}
	if !x.inGroup {
		c.routes(x, s)
	}
}

// routes makes the gate that computes where the work of x goes on, or the next step where there is
// but one.
func (c *conductor) routes(x *place, s *step) {
	if s.gate != nil && s.gate.level == "human" { // a person decides
		c.personRoutes(x, s)
		return
	}
	if x.kind == "script" && c.exitRoutes(x, s) {
		return
	}
	if len(x.hops) == 0 {
		s.next = []string{"DONE"}
		return
	}
	if len(x.hops) == 1 && x.hops[0].when == "" && s.gate == nil && x.passes == x.hops[0].to {
		s.next = []string{c.target(x.hops[0].to)}
		return
	}
	g := &gate{id: c.ids.id(s.id + "-routes"), level: "auto", fromStep: true, pass: []string{c.target(x.passes)},
		maxFailures: c.most}
	for _, h := range x.hops {
		expr, ok := "true", true
		if h.when != "" {
			expr, ok = c.condition(h.when, x)
		}
		if !ok {
			c.leave(get(h.n, "when"), "the condition is not read: a person says where the work goes on")
			c.flow.byHand(s, "conductor decides here by "+h.when+": pass, or name where it goes on.")
			c.personRoutes(x, s)
			return
		}
		name := "pass"
		if h.to != x.passes {
			name = routeTo(h.to)
			g.route(name, c.target(h.to))
		}
		if i := slices.IndexFunc(g.verdict, func(e entry) bool { return e.key == name }); i >= 0 {
			g.verdict[i].value = "(" + g.verdict[i].value + ") or (" + expr + ")"
		} else {
			g.verdict = append(g.verdict, entry{name, expr})
		}
	}
	c.standIn(x, s)
	if s.gate != nil { // the validator comes first
		s.gate.passGate = g.id
		c.flow.gates = append(c.flow.gates, g)
	} else {
		c.flow.judge(s, g)
	}
}

// exitRoutes reads routes by the exit code of a script.
func (c *conductor) exitRoutes(x *place, s *step) bool {
	bad, good := "", ""
	for _, h := range x.hops {
		switch w := strings.Join(strings.Fields(strings.Trim(h.when, "{} ")), " "); w {
		case "exit_code == 0", "output.exit_code == 0", x.name + ".output.exit_code == 0":
			good = h.to
		case "exit_code != 0", "output.exit_code != 0", x.name + ".output.exit_code != 0":
			bad = h.to
		case "":
			if good == "" {
				good = h.to
			} else if bad == "" {
				bad = h.to
			}
		default:
			return false
		}
	}
	if bad == "" || good == "" {
		return false
	}
	if x.passes == good {
		s.next, s.onFail = []string{c.target(good)}, c.target(bad)
		return true
	}
	g := &gate{id: c.ids.id(s.id + "-routes"), level: "auto", fromStep: true, pass: []string{"DONE"},
		onFail:  c.target(bad),
		verdict: []entry{{"again", "true"}}, routes: []entry{{"again", c.target(good)}}, maxFailures: c.most}
	c.flow.judge(s, g)
	return true
}

// personRoutes lets the person at the gate of x name where the work goes on.
func (c *conductor) personRoutes(x *place, s *step) {
	g := s.gate
	g.pass, g.routes = []string{c.target(x.passes)}, nil
	for _, h := range x.hops {
		if h.to != x.passes {
			g.route(routeTo(h.to), c.target(h.to))
		}
	}
}

// standIn says what the stand-in of x answers, so that its gate passes.
func (c *conductor) standIn(x *place, s *step) {
	if s.answer == nil {
		return
	}
	given := map[string]string{}
	for _, h := range x.hops {
		if h.to == x.passes {
			for _, m := range plainTests(h.when) {
				given[m[0]] = m[1]
			}
			break
		}
		for _, m := range plainTests(h.when) { // an earlier route is not to hold
			if m[1] == "true" {
				given[m[0]] = "false"
			}
		}
	}
	c.flow.plays(s, given)
}
