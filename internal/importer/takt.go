package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"gopkg.in/yaml.v3"
)

func seemsTakt(d document) bool {
	if d.md || get(d.root, "workflow") != nil || get(d.root, "agents") != nil {
		return false
	}
	steps := taktSteps(d.root)
	if !isList(steps) || len(steps.Content) == 0 {
		return false
	}
	first := resolve(steps.Content[0])
	return get(first, "name") != nil && (get(first, "rules") != nil || get(first, "uses") != nil || get(first,
		"parallel") != nil ||
		get(d.root, "initial_step") != nil || get(d.root, "initial_movement") != nil)
}

// taktSteps returns a workflow's steps, by their name of today or of earlier versions.
func taktSteps(root *yaml.Node) *yaml.Node { return cmp.Or(get(root, "steps"), get(root, "movements")) }

// takt makes one flow of a takt workflow.
type takt struct {
	*reader
	flow    *flow
	doc     document
	top     *takt // of the import: its prompts' folder is everybody's
	ids     namer
	nodes   []*taktStep
	byName  map[string]*taktStep
	returns []taktReturn
	most    int // steps at most; 0 = no limit

	// kept by top, of the whole import
	called    map[string]*takt // by name and arguments
	fragments map[string]*yaml.Node
	uses      int // fragments put in so far
}

// taktReturn is an outcome with which a called workflow ends.
type taktReturn struct{ gate, outcome, word string }

// taktStep is a step of takt with the fragments put in.
type taktStep struct {
	n        *yaml.Node
	name     string
	enter    string // the step of ours that leads into it
	leave    *step  // the one whose gate says what comes next
	children []*taktChild
	callee   *takt
	rules    []taktRule
	sources  []string // names of the steps that lead to it
	passes   string   // where its pass leads: a name, or an end
}

type taktChild struct {
	n    *yaml.Node
	name string
	step *step
	pool bool // it is done if it is selected
}

// taktRule is a rule of a step.
type taktRule struct {
	n         *yaml.Node
	condition string
	next      string // a step's name, COMPLETE or ABORT
	word      string // of return
	asks      bool   // it wants a person's word
}

func readTakt(r *reader, d document) {
	t := &takt{reader: r, doc: d, called: map[string]*takt{}, fragments: map[string]*yaml.Node{}}
	t.top = t
	t.read(nil)
}

// read reads a workflow with the values of its parameters.
func (t *takt) read(args map[string]*yaml.Node) {
	params := map[string]*yaml.Node{}
	for _, p := range pairs(at(t.doc.root, "subworkflow", "params")) {
		params[p.key.Value] = get(p.value, "default")
		if v, ok := args[p.key.Value]; ok {
			params[p.key.Value] = v
		}
	}
	t.byName, t.ids = map[string]*taktStep{}, namer{}
	var steps []*yaml.Node
	for _, n := range items(taktSteps(t.doc.root)) {
		s := t.expand(n, params, 0)
		if t.err != nil {
			return
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		t.fail(t.doc.root, "steps: expected a list of steps with a name")
		return
	}
	if t.passThrough(steps) {
		return
	}
	t.begin()
	t.firstStep(steps)
	for _, n := range steps {
		t.declare(n)
	}
	if t.targets(); t.err != nil {
		return
	}
	t.prune()
	for _, x := range t.nodes {
		t.shape(x)
	}
	t.choose()
	for _, x := range t.nodes {
		t.make(x)
	}
	t.monitors()
	for _, x := range t.nodes {
		t.account(x.n, "steps[]", x.name, &t.flow.step(x.enter).notes)
	}
	t.account(t.doc.root, "", "", &t.flow.notes)
}

// prune leaves out steps that no rule leads to, as a spec of ours may not have them.
func (t *takt) prune() {
	leads := map[string][]string{}
	for _, x := range t.nodes {
		for _, r := range x.rules {
			leads[x.name] = append(leads[x.name], r.next)
		}
	}
	seen := reached(t.nodes[0].name, leads)
	t.nodes = slices.DeleteFunc(t.nodes, func(x *taktStep) bool {
		if slices.Contains(seen, x.name) {
			return false
		}
		delete(t.byName, x.name)
		t.leaveOut(x.n, "steps[]", x.name, "no rule leads to this step")
		t.flow.notes = append(t.flow.notes, "left: the step "+x.name+", to which no rule leads")
		return true
	})
}

// begin makes the flow.
func (t *takt) begin() {
	t.flow = t.reader.begin(t.doc, t.doc.root, "takt",
		"An agent says the condition that holds as `outcome` in its answer; its reports are parts of "+
			"the answer too, and files of the run.")
	t.flow.vars = []variable{{name: "task", description: "what is to be done"}}
	if t != t.top {
		t.flow.vars = append(t.flow.vars, variable{name: "reports", value: quoted(""),
			description: "where the reports of the calling run are"})
	}
	for _, k := range []string{"max_steps", "max_movements", "max_iterations"} {
		t.most = cmp.Or(whole(get(t.doc.root, k), 1, 10_000), t.most)
	}
}

// firstStep puts the step that the workflow begins with in front.
func (t *takt) firstStep(steps []*yaml.Node) {
	first := str(get(t.doc.root, "initial_step")) + str(get(t.doc.root, "initial_movement"))
	if first != "" && !toFront(steps, func(n *yaml.Node) bool { return str(get(n, "name")) == first }) {
		t.fail(get(t.doc.root, "initial_step"), "initial_step %q: there is no such step", first)
	}
}

// passThrough reads the one workflow that this one only calls, in its place.
func (t *takt) passThrough(steps []*yaml.Node) bool {
	n := steps[0]
	name := str(get(n, "call"))
	if t != t.top || len(steps) > 1 || name == "" {
		return false
	}
	for _, r := range taktRules(n) {
		if r.condition != "COMPLETE" && r.condition != "ABORT" || r.next != r.condition {
			return false
		}
	}
	d, ok := t.find(get(n, "call"), name)
	if !ok {
		return false
	}
	inner := &takt{reader: t.reader, doc: d, called: t.called, fragments: t.fragments}
	inner.top = inner
	inner.read(values(get(n, "args")))
	if t.err != nil {
		return true
	}
	f := t.flows[0]
	f.name = str(get(t.doc.root, "name"))
	f.description = cmp.Or(str(get(t.doc.root, "description")), f.description)
	f.notes = append(f.notes, fmt.Sprintf("%s does nothing but call %s, whose steps stand here", path.Base(t.doc.file),
		name))
	t.account(n, "steps[]", str(get(n, "name")), &f.notes)
	t.account(t.doc.root, "", "", &f.notes)
	return true
}

// values are the values of a mapping by their keys.
func values(n *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for _, p := range pairs(n) {
		out[p.key.Value] = p.value
	}
	return out
}

// find reads a workflow of the tree by its name.
func (t *takt) find(n *yaml.Node, name string) (document, bool) {
	for _, f := range t.src.find(path.Base(name)+".yaml", path.Base(name)+".yml") {
		if dir := path.Base(path.Dir(f)); dir == "workflows" || dir == "pieces" || dir == path.Base(path.Dir(t.doc.file)) {
			return t.open(n, f)
		}
	}
	return document{}, false
}

// declare enters a step, and its children.
func (t *takt) declare(n *yaml.Node) {
	name := str(get(n, "name"))
	if name == "" {
		t.fail(n, "a step has no name")
		return
	}
	if t.byName[name] != nil {
		t.fail(n, "step %q is there twice", name)
		return
	}
	x := &taktStep{n: n, name: name, enter: t.ids.id(name), rules: taktRules(n)}
	p := get(n, "parallel")
	always := slices.Concat(items(p), items(get(p, "fixed")))
	for i, c := range slices.Concat(always, items(get(p, "pool"))) {
		x.children = append(x.children, &taktChild{n: c, name: str(get(c, "name")), pool: i >= len(always)})
	}
	if len(x.children) > 40 || len(t.nodes) > 100 {
		t.fail(n, "more than 100 steps, or more than 40 side by side")
	}
	t.byName[name] = x
	t.nodes = append(t.nodes, x)
}

// taktRules reads the rules of a step; of one with children, those of itself.
func taktRules(n *yaml.Node) (out []taktRule) {
	rules := get(n, "rules")
	if isMap(rules) {
		rules = get(rules, "self")
	}
	for _, r := range items(rules) {
		out = append(out, taktRule{n: r, condition: str(get(r, "condition")), next: str(get(r, "next")), word: str(get(r,
			"return")),
			asks: isTrue(get(r, "requires_user_input"))})
	}
	return out
}

// targets checks where rules lead, and notes which steps lead to each.
func (t *takt) targets() {
	for _, x := range t.nodes {
		for _, r := range x.rules {
			if r.next == "" || r.next == "COMPLETE" || r.next == "ABORT" {
				continue
			}
			to := t.byName[r.next]
			if to == nil {
				t.fail(get(r.n, "next"), "step %q: next %q: there is no such step", x.name, r.next)
				return
			}
			if to != x && !slices.Contains(to.sources, x.name) {
				to.sources = append(to.sources, x.name)
			}
		}
	}
}
