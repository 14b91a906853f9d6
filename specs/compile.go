package specs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/ids"
)

// The language's own limits. Defaults such as DefaultVetoWindow are in the settings.
const (
	maxRestarts = 100
	maxRetries  = 1000
)

// compiler builds an engine.Spec from what was read. It continues after a fault, to report all of
// them. Each of its floors calls only itself and those below it.
type compiler struct{ stepRows }

type (
	stepRows   struct{ childFlows }
	childFlows struct{ gateRows }
	gateRows   struct{ naming }
	naming     struct{ values } // what a name in the spec refers to
)

// values reads texts, numbers and paths, with their expressions.
type values struct {
	*reader
	doc   *specDoc
	spec  *engine.Spec
	from  sources  // what is not in the file
	list  string   // the step with for_each
	kids  []pinned // what child runs use
	notes book     // remarks that are not faults

	fixed  map[*yaml.Node]string // values of texts with expressions, fixed when the run starts
	world  world
	steps  map[string]*stepDoc
	gates  map[string]*gateDoc
	owners map[string]string     // gate -> the step it judges
	row    map[*stepDoc][]string // the gates that judge a step, in order
	lost   bool                  // a gate is named that does not exist, so an unnamed gate is not reported
}

func (c *compiler) compile() {
	c.fixed = map[*yaml.Node]string{}
	c.steps, c.gates = map[string]*stepDoc{}, map[string]*gateDoc{}
	c.owners, c.row = map[string]string{}, map[*stepDoc][]string{}
	c.names()
	c.workflow()
	for _, d := range c.doc.Steps {
		c.rows(d)
	}
	for _, d := range c.doc.Steps {
		c.step(d)
	}
	for _, d := range c.doc.Gates {
		c.gate(d)
	}
	c.implicit()
	c.spec.ReadsTasks = c.world.tasks
	c.followed()
	c.collisions()
	if w := c.doc.Workflow; w != nil {
		c.limitedRoles(w.Limits)
		c.forge(w)
	}
}

// reserved reports words that are targets, outcomes or device names and cannot be ids.
func reserved(id string) string {
	switch low := strings.ToLower(id); low {
	case "done", "failed", "aborted":
		return "names an end"
	case "human", "pass", "fail", "veto", "remind":
		return "is a word of the language"
	case "con", "prn", "aux", "nul":
		return "names a device on Windows"
	}
	return ""
}

// names enters all ids into the shared name space of steps and gates.
func (c *naming) names() {
	first := map[string]*yaml.Node{}
	enter := func(id ident, noun string) bool {
		if !id.set() {
			return false
		}
		if why := reserved(id.value); why != "" {
			c.at(id.node, "%s id %s: it %s: take another", noun, quote(id.value), why)
			return false
		}
		low := strings.ToLower(id.value)
		if f := first[low]; f != nil {
			why := "is taken"
			if resolve(f).Value != id.value {
				why = fmt.Sprintf("differs from %s only in case", quote(resolve(f).Value))
			}
			c.at(id.node, "%s id %s %s: line %d has it (steps and gates share one name space)", noun, quote(id.value), why,
				f.Line)
			return false
		}
		first[low] = id.node
		return true
	}
	for _, d := range c.doc.Steps {
		if enter(d.ID, "step") {
			c.steps[d.ID.value] = d
			c.world.steps = append(c.world.steps, d.ID.value)
		}
	}
	for _, d := range c.doc.Gates {
		if enter(d.ID, "gate") {
			c.gates[d.ID.value] = d
			c.world.gates = append(c.world.gates, d.ID.value)
			c.world.asked(&c.values, d)
		}
	}
	for _, d := range c.doc.Steps { // an implicit gate has its step's id
		if d.ID.set() && !d.has("gate") {
			c.world.gates = append(c.world.gates, d.ID.value)
		}
	}
}

func (c *compiler) workflow() {
	w := c.doc.Workflow
	if w == nil {
		return
	}
	c.world.vars = w.Vars.items
	s := c.spec
	s.ID, s.Name, s.Description = w.ID.value, orID(w.Name, w.ID), w.Description.value
	if w.ID.set() && c.file != "" {
		if base := path.Base(strings.ReplaceAll(c.file, `\`, "/")); base != w.ID.value+".yaml" {
			c.at(w.ID.node, "workflow: id %s: the file is named after the workflow's id: name it %s.yaml, or change the id",
				quote(w.ID.value), w.ID.value)
		}
	}
	if why := reserved(w.ID.value); why != "" {
		c.at(w.ID.node, "workflow: id %s: it %s: take another", quote(w.ID.value), why)
	}
	onCompiler{c}.compile()
	for _, v := range w.Vars.items {
		v.Foreign = c.world.said[v.Name]
		s.Vars = append(s.Vars, v.Var)
	}
	s.ContextFiles = c.fixedPaths(w.ContextFiles, "workflow: context_files")
	s.Protect = c.fixedPaths(w.Protect, "workflow: protect")
	if w.Workspace.value == engine.WorkspaceRun {
		s.Workspace = engine.WorkspaceRun
	}
	s.OnDone = c.onDone(w)
	s.Setup = c.setup(w.Setup, "workflow: setup")
	for _, n := range w.Needs.items {
		need, ok := c.need(n, "workflow: needs")
		if ok && need.Workflow == "" {
			c.at(n.node, "workflow: needs %s: name a step of another workflow, as other/%s", quote(n.value), n.value)
		} else if ok {
			s.Needs = append(s.Needs, need)
		}
	}
	if w.Hooks != nil {
		s.AfterStep = c.judge(w.Hooks.AfterStep, inStep, "hooks: after_step")
		s.AfterTask = c.judge(w.Hooks.AfterTask, inStep, "hooks: after_task")
		if s.AfterTask != nil && !slices.ContainsFunc(c.doc.Steps, func(o *stepDoc) bool { return o.ForEach != nil }) {
			c.at(w.Hooks.AfterTask.node, "workflow: hooks: after_task follows the tasks of a for_each, and no step has one")
		}
		s.AfterRun = c.judge(w.Hooks.AfterRun, inStep, "hooks: after_run")
		s.Notify = c.yes(w.Hooks.Notify, "workflow: hooks: notify")
	}
	c.limits(w.Limits)
}

func orID(name scalar, id ident) string {
	if name.value != "" {
		return name.value
	}
	return id.value
}

// need parses X-0 or other/Y-2.
func (c *naming) need(t scalar, what string) (engine.Need, bool) {
	wf, step, other := strings.Cut(t.value, "/")
	if !other {
		return engine.Need{Step: t.value}, true
	}
	for _, id := range []string{wf, step} {
		if bad := ids.Fault(id); bad != "" {
			c.at(t.node, "%s %s: %s %s: write workflow/step", what, quote(t.value), quote(id), bad)
			return engine.Need{}, false
		}
	}
	if strings.EqualFold(wf, c.spec.ID) {
		c.at(t.node, "%s %s: that is this workflow: write %s", what, quote(t.value), step)
		return engine.Need{}, false
	}
	return engine.Need{Workflow: wf, Step: step}, true
}

// rows follows gate and next_gate to find which gates judge the step, in order.
func (c *naming) rows(d *stepDoc) {
	if !d.Gate.set() || !d.ID.set() {
		return
	}
	at, id, what := d.Gate.node, d.Gate.value, "step "+d.ID.value+": gate"
	for {
		g := c.gates[id]
		if g == nil {
			c.lost = true
			c.unknown(at, what, id, "gate", c.world.gates)
			return
		}
		if owner, taken := c.owners[id]; taken {
			if owner == d.ID.value {
				c.at(at, "%s %s is in the row of step %s twice", what, quote(id), owner)
			} else {
				c.at(at, "%s %s judges step %s already: a gate belongs to one step", what, quote(id), owner)
			}
			return
		}
		c.owners[id], c.row[d] = d.ID.value, append(c.row[d], id)
		if g.OnPass == nil || !g.OnPass.NextGate.set() {
			return
		}
		at, id, what = g.OnPass.NextGate.node, g.OnPass.NextGate.value, "gate "+id+": next_gate"
	}
}

// unknown reports an undefined name, unless one is written so and its own fault is reported.
func (c *naming) unknown(n *yaml.Node, what, id, noun string, known []string) {
	hint, same := c.near(id, known), func(i ident) bool { return i.value == id }
	if c.steps[id] != nil || c.gates[id] != nil {
		hint = ": it is " + map[string]string{"gate": "a step", "step": "a gate"}[noun]
	} else if slices.ContainsFunc(c.doc.Gates, func(d *gateDoc) bool { return same(d.ID) }) ||
		slices.ContainsFunc(c.doc.Steps, func(d *stepDoc) bool { return same(d.ID) }) {
		return
	}
	c.at(n, "%s %s: there is no such %s%s", what, quote(id), noun, hint)
}

// target checks the name of a step or an end; more lists other valid names.
func (c *naming) target(t scalar, what string, more ...string) (string, bool) {
	switch {
	case !t.set():
		return "", false
	case engine.IsEnd(t.value), slices.Contains(more, t.value), c.steps[t.value] != nil:
		return t.value, true
	}
	ends := []string{engine.EndDone, engine.EndFailed, engine.EndAborted}
	c.unknown(t.node, what, t.value, "step", slices.Concat(c.world.steps, ends, more))
	return "", false
}

func (c *naming) targets(d targetsDoc, what string) (out []string) {
	for _, t := range d.items {
		id, ok := c.target(t, what)
		switch {
		case !ok:
		case d.list && engine.IsEnd(id):
			c.at(t.node, "%s: a list holds steps only, and %s is an end", what, id)
		case slices.Contains(out, id):
			c.at(t.node, "%s: %s is in the list twice", what, id)
		default:
			out = append(out, id)
		}
	}
	return out
}

// link derives the graph and places its faults.
func (c *compiler) link() {
	defer c.linkChildren()
	if c.graphFaults(c.spec.Link()); len(c.faults) == 0 {
		c.beside()
	}
}

func (c *compiler) graphFaults(faults []engine.GraphFault) {
	for _, f := range faults {
		d := c.steps[f.Steps[0]]
		at := d.ID.node
		if f.Kind == "cycle" {
			at = c.leading(d, f.Steps[1%len(f.Steps)])
		}
		c.at(at, "%s", f.Message)
	}
}

// leading finds where a step names another as its successor.
func (c *compiler) leading(d *stepDoc, to string) *yaml.Node {
	for _, t := range d.NextStep.items {
		if t.value == to {
			return t.node
		}
	}
	for id, owner := range c.owners {
		if g := c.gates[id]; owner == d.ID.value && g.OnPass != nil {
			for _, t := range g.OnPass.NextStep.items {
				if t.value == to {
					return t.node
				}
			}
		}
	}
	for _, t := range c.steps[to].Needs.items {
		if t.value == d.ID.value {
			return t.node
		}
	}
	return d.ID.node
}
