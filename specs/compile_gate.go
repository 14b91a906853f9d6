package specs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/layout"
)

func (c *gateRows) gate(d *gateDoc) {
	what := "gate " + d.ID.value
	if !d.ID.set() {
		what = "a gate"
	}
	g := &engine.Gate{ID: d.ID.value, Name: orID(d.Name, d.ID), Step: c.owners[d.ID.value]}
	if d.ID.set() && c.gates[d.ID.value] == d && g.Step == "" && !c.lost {
		c.at(d.ID.node, "%s judges no step: name it under a step's gate or a gate's next_gate, or remove it", what)
	}
	g.When = c.condition(d.When.scalar, inGate, what+": when")
	if d.Reviewer != nil {
		g.Reviewer = c.reviewer(d, what)
	}
	g.Restarts = c.restarts(d.Restarts, what+": restarts")
	g.Answer = c.schema(d.Answer, what+": answer")
	g.ReadAnswer = readAnswer(g)
	g.Outputs = c.outputs(d.Outputs, inGate, what+": outputs")
	g.Verdict = c.verdict(d, what)
	if d.VetoWindow.set() {
		g.VetoWindow = new(c.span(d.VetoWindow, what+": veto_window"))
	}
	g.Timeout = c.positiveSpan(d.Timeout, what+": timeout")
	c.passes(d, g, what)
	c.fails(d, g, what)
	c.routes(d, g, what)
	c.human(d, g, what)
	if d.ID.set() && c.gates[d.ID.value] == d {
		c.spec.Gates = append(c.spec.Gates, g)
	}
}

func (c *gateRows) verdict(d *gateDoc, what string) (v engine.Verdict) {
	what += ": verdict"
	if d.Verdict.name.set() {
		t := d.Verdict.name.scalar
		value := c.value(t, inGate, what)
		v.Name = &engine.Text{Source: t.value, Eval: func(env *engine.Env) (string, error) {
			x, err := value.Eval(env)
			if err != nil {
				return "", err
			}
			name, ok := x.(string)
			if !ok || ids.Fault(name) != "" {
				return "", fmt.Errorf("%s: %s: it gives the outcome's name, this gave %s", what, t.value, valueKind(x))
			}
			return name, nil
		}}
	}
	for _, rule := range d.Verdict.rules {
		if bad := ids.Fault(rule.name); bad != "" {
			c.at(rule.key, "%s: outcome %s %s", what, quote(rule.name), bad)
		}
		if why := reservedOutcome(rule.name); why != "" && rule.name != engine.OutcomePass &&
			rule.name != engine.OutcomeFail && rule.name != engine.Human {
			c.at(rule.key, "%s: outcome %s %s", what, quote(rule.name), why)
		}
		v.Rules = append(v.Rules, engine.Rule{Outcome: rule.name, When: c.condition(rule.text, inGate, what+": "+rule.name)})
	}
	return v
}

// reservedOutcome returns why a name cannot be a route's.
func reservedOutcome(name string) string {
	switch strings.ToLower(name) {
	case "pass", "fail", "veto":
		return "is not a route name: pass, fail and veto are a human's words: pass goes to on_pass, fail and veto to on_fail"
	case "done":
		return "is not a route name: <id>-done is a step's signal"
	case "human":
		return "is not a route name: it makes the round a human's: name it in verdict, or as where a route leads"
	}
	return ""
}

func (c *gateRows) passes(d *gateDoc, g *engine.Gate, what string) {
	p := d.OnPass
	if p == nil {
		return
	}
	switch step, gate := p.has("next_step"), p.has("next_gate"); {
	case step && gate:
		c.at(p.key("next_gate"), "%s: on_pass has next_step and next_gate: remove one of them", what)
	case !step && !gate && p.Node != nil && len(p.Node.Content) == 0: // else it is reported what stands there
		c.at(p.Node, "%s: on_pass leads nowhere: give it next_step or next_gate", what)
	}
	g.OnPass = c.targets(p.NextStep, what+": on_pass")
	if g.NextGate = p.NextGate.value; g.NextGate != "" && g.Step == "" && c.gates[g.NextGate] == nil {
		c.unknown(p.NextGate.node, what+": next_gate", g.NextGate, "gate", c.world.gates)
	}
}

func (c *gateRows) fails(d *gateDoc, g *engine.Gate, what string) {
	g.OnFail = g.Step
	g.RetryContext = retryFile(g.ID)
	g.MaxRetries = engine.DefaultMaxRetries
	most, key := d.MaxRetries, "max_retries"
	if d.has("max_failures") {
		if d.has("max_retries") {
			c.at(d.key("max_retries"), "%s: max_retries and max_failures are two names of one count: keep one of them", what)
		}
		most, key = d.MaxFailures, "max_failures"
	}
	c.count(most, 0, maxRetries, what+": "+key, &g.MaxRetries)
	g.MaxRetries = max(1, g.MaxRetries)
	f := d.OnFail
	if f == nil {
		return
	}
	if f.NextStep.value == engine.Human {
		c.at(f.NextStep.node,
			"%s: on_fail leads to a step or an end: to ask a human, take level human, on_exhausted: human or a route", what)
	} else if to, ok := c.target(f.NextStep, what+": on_fail"); ok {
		g.OnFail = to
	}
	if f.RetryContext.set() {
		g.RetryContext = c.retryPath(f.RetryContext, what+": retry_context_path")
	}
}

// retryFile is the retry-context file of a gate that names none.
func retryFile(gate string) string { return layout.RetryDir + "/" + gate + "-attempt-{n}.md" }

// retryPath requires {n}, which distinguishes failures, and a file where steps look for it.
func (c *gateRows) retryPath(t scalar, what string) string {
	v, ok := c.bound(t, what)
	if !ok {
		return t.value
	}
	bad := badPath(v)
	if bad == "" && path.Dir(path.Clean(v)) != layout.RetryDir {
		bad = "is not directly in " + layout.RetryDir + "/"
	}
	if bad == "" && strings.Count(v, "{n}") != 1 {
		bad = "does not hold {n} once: each failure's feedback is a file of its own"
	}
	if bad == "" && strings.HasPrefix(path.Base(v), ".") {
		bad = "begins with a dot"
	}
	if bad != "" {
		c.at(t.node, "%s %s %s", what, quote(v), bad)
	}
	return path.Clean(v)
}

// routes checks that each route leads somewhere and that its outcome is possible.
func (c *gateRows) routes(d *gateDoc, g *engine.Gate, what string) {
	what += ": routes"
	for _, r := range d.Routes.items {
		if why := reservedOutcome(r.name); why != "" {
			c.at(r.key, "%s: %s %s", what, quote(r.name), why)
			continue
		}
		if bad := ids.Fault(r.name); bad != "" {
			c.at(r.key, "%s: %s %s", what, quote(r.name), bad)
			continue
		}
		if to, ok := c.target(r.text, what+": "+r.name, engine.Human); ok {
			g.Routes = append(g.Routes, engine.Route{Outcome: r.name, To: to})
		}
		if !c.sayable(d, r.name) {
			c.at(r.key, "%s: no verdict names %s%s", what, quote(r.name), c.near(r.name, outcomes(d)))
		}
	}
}

// sayable reports whether an outcome is possible: a rule names it, or someone may choose it freely.
// A person may choose any route's name, and a step may report that it is blocked.
func (c *naming) sayable(d *gateDoc, outcome string) bool {
	names := outcomes(d)
	free := len(d.Verdict.rules) == 0 || d.Reviewer != nil && d.Reviewer.Level.value == engine.LevelHuman
	return free || outcome == engine.OutcomeBlocked || outcome == engine.OutcomeLost ||
		slices.Contains(names, outcome) || slices.Contains(names, engine.Human)
}

func outcomes(d *gateDoc) (names []string) {
	for _, r := range d.Verdict.rules {
		names = append(names, r.name)
	}
	return names
}

// implicitGate returns a gate that takes the step's own result: a failure ends the run.
func implicitGate(s *engine.Step, to []string) *engine.Gate {
	return &engine.Gate{ID: s.ID, Name: s.Name, Step: s.ID, Implicit: true,
		Reviewer: engine.Reviewer{Level: engine.LevelAuto, FromStep: true},
		OnPass:   to, OnFail: engine.EndFailed, OnExhausted: engine.EndFailed, OnTimeout: "remind", MaxRetries: 1,
		RetryContext: retryFile(s.ID)}
}

// implicit creates the gate of each step that names none; a failure goes to its on_fail, if any.
func (c *gateRows) implicit() {
	for _, s := range c.spec.Steps {
		d := c.steps[s.ID]
		if d.has("gate") {
			continue
		}
		var to []string
		for _, t := range d.NextStep.items {
			to = append(to, t.value)
		}
		g := implicitGate(s, to)
		if t, ok := c.target(d.OnFail, "step "+s.ID+": on_fail"); ok {
			g.OnFail, g.OnExhausted, g.MaxRetries = t, engine.Human, engine.DefaultMaxRetries
		}
		c.spec.Gates = append(c.spec.Gates, g)
	}
}

// collisions reports file names with two meanings (2-files, rule 6): two steps' signals, a decision
// and a signal, or two decisions; and two gates with one retry file. It ignores case, as some file
// systems do.
func (c *naming) collisions() {
	meaning := map[string]string{}
	claim := func(name, what string, at *yaml.Node) bool {
		low := strings.ToLower(name)
		if other, ok := meaning[low]; ok && other != what {
			c.at(at, "%s means two things: %s, and %s", quote(name), other, what)
			return false
		}
		meaning[low] = what
		return true
	}
	for _, s := range c.spec.Steps {
		d := c.steps[s.ID]
		claim(s.ID+"-done.json", "step "+s.ID+" is done", d.ID.node)
	}
	for _, s := range c.spec.Steps {
		at := c.steps[s.ID].ID.node
		if d := c.steps[s.ID].Signal; d != nil && d.Value.set() {
			at = d.Value.node
		}
		switch s.Signal.Type {
		case engine.SignalFile:
			claim(path.Base(s.Signal.Value), "step "+s.ID+" is done", at)
		case engine.SignalCommit:
			claim("commit marker "+s.Signal.Value, "step "+s.ID+" is done", at)
		}
	}
	for _, g := range c.spec.Gates {
		words := []string{engine.OutcomePass, engine.OutcomeFail, engine.OutcomeVeto}
		var at *yaml.Node
		if g.Implicit {
			at = c.steps[g.ID].ID.node
		} else {
			at = c.gates[g.ID].ID.node
		}
		for _, r := range g.Routes {
			words = append(words, r.Outcome)
		}
		for _, w := range words {
			for _, ending := range []string{"", ".json", ".md", ".txt"} {
				if !claim(g.ID+"-"+w+ending, fmt.Sprintf("%s at gate %s", w, g.ID), at) {
					break
				}
			}
		}
		claim(g.RetryContext, "the feedback of gate "+g.ID, at)
	}
}
