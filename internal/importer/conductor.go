package importer

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

func seemsConductor(d document) bool {
	return !d.md && isMap(get(d.root, "workflow")) && get(d.root, "agents") != nil && at(d.root, "workflow",
		"entry_point") != nil
}

// conductor makes one flow of a conductor workflow.
type conductor struct {
	*reader
	flow   *flow
	doc    document
	ids    namer
	places []*place
	byName map[string]*place
	sets   map[string]string // an expression for each value that a set node gives, as name or name.key
	listed bool              // the flow has its list
	most   int               // how often the work goes back before a person is asked
}

// place is a node of the graph: an agent, or a group.
type place struct {
	n       *yaml.Node
	prefix  string // of its keys in the table
	name    string
	kind    string
	enter   string
	leave   *step
	members []*place // of a parallel group
	inGroup bool
	hops    []hop
	passes  string
}

// hop is a route.
type hop struct {
	n    *yaml.Node
	when string
	to   string
}

func readConductor(r *reader, d document) { r.conductorFlow(d) }

// conductorFlow reads a workflow and those that it runs.
func (r *reader) conductorFlow(d document) *flow {
	r.files(d, d.root)
	w := get(d.root, "workflow")
	f := r.begin(d, w, "conductor",
		"There each agent is given what those before it said; here a prompt has what it names.")
	c := &conductor{reader: r, flow: f, doc: d, ids: namer{}, byName: map[string]*place{}, sets: map[string]string{},
		most: 10}
	for _, p := range pairs(get(w, "input")) {
		c.input(p)
	}
	c.declare()
	if r.err != nil {
		return f
	}
	c.limits(w)
	for _, x := range c.places {
		c.shape(x)
	}
	c.choose()
	for _, x := range c.places {
		c.set(x)
	}
	for _, x := range c.places {
		c.make(x)
	}
	for _, x := range c.places {
		c.account(x.n, x.prefix, x.name, &c.flow.step(x.enter).notes)
	}
	c.result()
	c.account(d.root, "", "", &f.notes)
	return f
}

// result keeps what the workflow's output is, for one that runs it.
func (c *conductor) result() {
	var out []string
	for _, p := range pairs(get(c.doc.root, "output")) {
		if expr, ok := c.joined(str(p.value), nil); ok {
			out = append(out, strconv.Quote(p.key.Value)+": "+expr)
		}
	}
	if len(out) > 0 {
		c.flow.gives = "{" + strings.Join(out, ", ") + "}"
	}
}

// files puts the text of a file in the place of each !file.
func (r *reader) files(d document, n *yaml.Node) {
	if n.Tag == fileTag && n.Kind == yaml.ScalarNode {
		words, err := r.src.text(path.Join(path.Dir(d.file), n.Value))
		if err != nil {
			r.fail(n, "!file %q: %v", n.Value, err)
			return
		}
		n.SetString(words)
	}
	for _, c := range n.Content {
		r.files(d, c)
	}
}

func (c *conductor) input(p pair) {
	v := variable{name: varName(p.key.Value), description: str(get(p.value, "description"))}
	if d := get(p.value, "default"); d != nil && d.Kind == yaml.ScalarNode && d.ShortTag() != "!!null" {
		v.value = clone(d)
	} else if r := get(p.value, "required"); r != nil && !isTrue(r) || d != nil {
		v.value = quoted("")
	}
	c.flow.addVar(v)
	m := mark{as: Taken}
	if k := str(get(p.value, "type")); k == "array" || k == "object" {
		m = mark{Approximated, "a var of ours is a text, a number, true or false: give it as JSON"}
	}
	c.take(p.value)
	c.add(p.key, "workflow.input."+p.key.Value, "", m, &c.flow.notes)
}

func (c *conductor) limits(w *yaml.Node) {
	if n := whole(at(w, "limits", "max_iterations"), 1, 99_999); n > 0 {
		c.flow.limits = append(c.flow.limits, entry{"max_steps", strconv.Itoa(n)})
		c.most = min(n, 1000)
	}
	if s := seconds(at(w, "limits", "timeout_seconds")); s != "" {
		c.flow.limits = append(c.flow.limits, entry{"max_duration", s})
	}
}

// declare enters agents and groups, the entry point first.
func (c *conductor) declare() {
	enter := func(n *yaml.Node, prefix, kind string) {
		name := str(get(n, "name"))
		if name == "" {
			c.fail(n, "%s: one has no name", prefix)
			return
		}
		if c.byName[name] != nil {
			c.fail(n, "%q is there twice", name)
			return
		}
		x := &place{n: n, prefix: prefix, name: name, kind: kind, enter: c.ids.id(name)}
		for _, r := range items(get(n, "routes")) {
			to := str(get(r, "to"))
			if to == "self" {
				to = name
			}
			x.hops = append(x.hops, hop{r, str(get(r, "when")), to})
		}
		c.byName[name] = x
		c.places = append(c.places, x)
	}
	for _, n := range items(get(c.doc.root, "agents")) {
		enter(n, "agents[]", cmp.Or(str(get(n, "type")), "agent"))
	}
	for _, kind := range []string{"parallel", "for_each"} {
		for _, n := range items(get(c.doc.root, kind)) {
			enter(n, kind+"[]", kind)
		}
	}
	if len(c.places) == 0 || len(c.places) > 120 {
		c.fail(c.doc.root, "agents: expected 1 to 120 agents and groups, found %d", len(c.places))
		return
	}
	first := str(at(c.doc.root, "workflow", "entry_point"))
	if c.byName[first] == nil {
		c.fail(at(c.doc.root, "workflow", "entry_point"), "entry_point %q: there is no such agent or group", first)
		return
	}
	c.link(first)
}

// link resolves groups and routes, and leaves out what nothing leads to.
func (c *conductor) link(first string) {
	for _, x := range c.places {
		if x.kind != "parallel" {
			continue
		}
		for _, name := range texts(get(x.n, "agents")) {
			m := c.byName[name]
			if m == nil || m.kind == "parallel" {
				c.fail(get(x.n, "agents"), "group %q: agent %q: there is no such agent", x.name, name)
				return
			}
			x.members = append(x.members, m)
		}
	}
	c.prune(first)
	for _, x := range c.places {
		for _, m := range x.members {
			m.inGroup = true
		}
	}
	toFront(c.places, func(x *place) bool { return x.name == first })
}

// prune leaves out what nothing leads to, and checks where the routes of the others lead.
func (c *conductor) prune(first string) {
	leads := map[string][]string{}
	for _, x := range c.places {
		leads[x.name] = x.leads()
		for _, m := range x.members {
			leads[x.name] = append(leads[x.name], m.name)
		}
	}
	seen := reached(first, leads)
	c.places = slices.DeleteFunc(c.places, func(x *place) bool {
		if slices.Contains(seen, x.name) {
			c.checkRoutes(x)
			return false
		}
		delete(c.byName, x.name)
		c.leaveOut(x.n, x.prefix, x.name, "no route leads to it")
		c.flow.notes = append(c.flow.notes, "left: "+x.name+", to which no route leads")
		return true
	})
}

// leads are the names to which a place's routes and options lead.
func (x *place) leads() (out []string) {
	for _, h := range x.hops {
		out = append(out, h.to)
	}
	for _, o := range items(get(x.n, "options")) {
		if to := str(get(o, "route")); to != "" {
			out = append(out, to)
		}
	}
	return out
}

func (c *conductor) checkRoutes(x *place) {
	check := func(at *yaml.Node, to string) {
		if to != "$end" && c.byName[to] == nil {
			c.fail(at, "%q: route to %q: there is no such agent or group", x.name, to)
		}
	}
	for _, h := range x.hops {
		check(get(h.n, "to"), h.to)
	}
	for _, o := range items(get(x.n, "options")) {
		check(o, cmp.Or(str(get(o, "route")), "$end"))
	}
}

// shape makes the steps of a place: one, or a fork, its members and a join.
func (c *conductor) shape(x *place) {
	if x.inGroup {
		return
	}
	var sides []*step
	for _, m := range x.members {
		m.leave = &step{id: m.enter}
		sides = append(sides, m.leave)
	}
	x.leave = c.flow.fork(x.enter, sides, func() string { return c.ids.id(x.name + "-join") })
	if str(get(x.n, "failure_mode")) == "continue_on_error" {
		for _, s := range sides {
			s.onFail = x.leave.id
		}
	}
}

// choose finds where the pass of each place leads.
func (c *conductor) choose() {
	targets := map[string][]string{}
	for _, x := range c.places {
		targets[x.name] = x.leads()
	}
	to := passes(c.places[0].name, targets)
	for _, x := range c.places {
		x.passes = to[x.name]
	}
}

func (c *conductor) target(name string) string {
	if x := c.byName[name]; x != nil {
		return x.enter
	}
	return "DONE"
}
