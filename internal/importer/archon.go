package importer

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

func seemsArchon(d document) bool {
	nodes := get(d.root, "nodes")
	return !d.md && isList(nodes) && len(nodes.Content) > 0 && get(resolve(nodes.Content[0]), "id") != nil
}

// archon makes one flow of an Archon workflow.
type archon struct {
	*reader
	flow   *flow
	doc    document
	nodes  []*archonNode
	ids    namer
	stands map[string][]string // the last nodes of what a node includes
}

// archonNode is a node, with those of included workflows in the place of the node that includes them.
type archonNode struct {
	n     *yaml.Node
	id    string // ours
	of    string // the original's
	kind  string // the key that says what it does
	deps  []string
	when  []scoped     // the conditions of the nodes that include it, and its own
	scope *archonScope // what its references mean
	skips bool         // it may be skipped
	rule  string       // trigger_rule
	read  bool         // others read its output
	step  *step
}

// scoped is a text with what its references mean.
type scoped struct {
	n     *yaml.Node
	scope *archonScope
}

// archonScope is one document's nodes by their names there.
type archonScope struct {
	ids    map[string]string // to ours; of an included workflow, its last node
	inputs map[string]string // $INPUTS.name, as the including node gives it
	outer  *archonScope      // of the including node
	prefix string            // what begins the ids of its nodes
	before []string          // what the first of them come after
	when   []scoped          // the conditions of the nodes that include it
	depth  int
}

func readArchon(r *reader, d document) { r.archonFlow(d) }

// archonFlow reads a workflow and those that it runs.
func (r *reader) archonFlow(d document) *flow {
	f := r.begin(d, d.root, "Archon",
		"A conversation of Archon goes on from node to node without `context: fresh`; here each step begins anew.")
	a := &archon{reader: r, flow: f, doc: d, ids: namer{}, stands: map[string][]string{}}
	if w := at(d.root, "worktree", "enabled"); w != nil && !isTrue(w) {
		f.workspace = ""
	}
	for _, p := range pairs(get(d.root, "inputs")) {
		a.input(p)
	}
	a.collect(d, &archonScope{ids: map[string]string{}})
	if r.err != nil {
		return f
	}
	a.order()
	a.references()
	a.skipping()
	for _, n := range a.nodes {
		if a.node(n); r.err != nil {
			return f
		}
	}
	a.edges()
	r.account(d.root, "", "", &f.notes)
	return f
}

func (a *archon) input(p pair) {
	v := variable{name: varName(p.key.Value), description: str(get(p.value, "description"))}
	if d := get(p.value, "default"); d != nil || !isTrue(get(p.value, "required")) {
		v.value = quoted(str(d))
	}
	a.flow.addVar(v)
	a.take(p.value)
	a.add(p.key, "inputs."+p.key.Value, "", mark{as: Taken}, nil)
}

// archonKinds are the keys of which a node has one.
func archonKinds() []string {
	return []string{"command", "prompt", "bash", "script", "loop", "loop_group", "approval", "cancel", "include",
		"workflow"}
}

// collect reads the nodes of a document into a.nodes, and returns the last of them.
func (a *archon) collect(d document, scope *archonScope) (ends []string) {
	nodes := get(d.root, "nodes")
	if scope.depth > 8 {
		a.fail(nodes, "workflows include one another more than 8 deep")
		return nil
	}
	if !isList(nodes) || len(nodes.Content) == 0 {
		a.fail(d.root, "nodes: expected a list of nodes with an id")
		return nil
	}
	last := map[string]bool{}
	for _, n := range items(nodes) {
		id := str(get(n, "id"))
		if id == "" || !isMap(n) {
			a.fail(n, "a node has no id")
			return nil
		}
		if scope.ids[id] != "" {
			a.fail(n, "node %q is there twice", id)
			return nil
		}
		scope.ids[id] = a.ids.id(scope.prefix + id)
		last[id] = true
	}
	for _, n := range items(nodes) {
		for _, dep := range texts(get(n, "depends_on")) {
			if scope.ids[dep] == "" {
				a.fail(get(n, "depends_on"), "node %q: depends_on %q: there is no such node", str(get(n, "id")), dep)
			}
			delete(last, dep)
		}
		a.one(n, scope)
		if a.err != nil || len(a.nodes) > 150 {
			a.fail(n, "more than 150 nodes")
			return nil
		}
	}
	for _, n := range items(nodes) {
		if id := str(get(n, "id")); last[id] {
			ends = append(ends, a.lasts(scope.ids[id])...)
		}
	}
	return ends
}

// one reads a node.
func (a *archon) one(n *yaml.Node, scope *archonScope) {
	of := str(get(n, "id"))
	kinds := slices.DeleteFunc(archonKinds(), func(k string) bool { return get(n, k) == nil })
	switch {
	case len(kinds) == 0:
		a.fail(n, "node %q does nothing: it has none of %s", of, strings.Join(archonKinds(), ", "))
		return
	case len(kinds) > 1:
		a.fail(get(n, kinds[1]), "node %q has %s and %s: a node does one thing", of, kinds[0], kinds[1])
		return
	}
	x := &archonNode{n: n, id: scope.ids[of], of: of, kind: kinds[0], scope: scope, rule: str(get(n, "trigger_rule"))}
	for _, dep := range texts(get(n, "depends_on")) {
		x.deps = append(x.deps, scope.ids[dep])
	}
	if len(x.deps) == 0 {
		x.deps = scope.before
	}
	x.when = slices.Clone(scope.when)
	if w := get(n, "when"); str(w) != "" {
		x.when = append(x.when, scoped{w, scope})
	}
	if x.kind == "include" {
		a.include(x)
		return
	}
	a.nodes = append(a.nodes, x)
}

// include puts the nodes of another workflow in the place of x.
func (a *archon) include(x *archonNode) {
	n := get(x.n, "include")
	d, ok := a.workflow(n, str(n))
	if !ok {
		a.leave(n, "no workflow %q was found beside this one", str(n))
		x.kind = "prompt"
		a.nodes = append(a.nodes, x)
		return
	}
	inner := &archonScope{ids: map[string]string{}, inputs: map[string]string{}, outer: x.scope,
		prefix: x.scope.prefix + x.of + "-", before: x.deps, when: x.when, depth: x.scope.depth + 1}
	for _, p := range pairs(get(x.n, "with")) {
		inner.inputs[p.key.Value] = str(p.value)
	}
	ends := a.collect(d, inner)
	if a.err != nil || len(ends) == 0 {
		return
	}
	a.stands[x.id] = ends
	a.account(d.root, "", "", nil)
	a.account(x.n, "nodes[]", x.of, &a.flow.notes)
}

// lasts returns a node, or the last nodes of what it includes.
func (a *archon) lasts(id string) (out []string) {
	if ends, ok := a.stands[id]; ok {
		return ends
	}
	return []string{id}
}

// workflow finds and reads another workflow of the tree by its name.
func (a *archon) workflow(n *yaml.Node, name string) (document, bool) {
	found := a.src.find(name+".yaml", name+".yml")
	if len(found) == 0 {
		return document{}, false
	}
	return a.open(n, found[0])
}

// open reads a further document of the tree.
func (r *reader) open(n *yaml.Node, file string) (document, bool) {
	b, err := r.src.read(file, maxSource)
	if err != nil {
		r.fail(n, "%s: %v", r.src.name(file), err)
		return document{}, false
	}
	root, err := parse(r.src.name(file), b, 0)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return document{}, false
	}
	d := document{file: file, root: root}
	r.from(root, file, 0)
	return d, true
}

// order puts a node that begins the run first, as ours do, and names what stands for included nodes.
func (a *archon) order() {
	for _, x := range a.nodes {
		var deps []string
		for _, d := range x.deps {
			deps = append(deps, a.lasts(d)...)
		}
		slices.Sort(deps)
		x.deps = slices.Compact(deps)
	}
	slices.SortStableFunc(a.nodes, func(x, y *archonNode) int { return min(len(x.deps), 1) - min(len(y.deps), 1) })
	if len(a.nodes) > 0 && len(a.nodes[0].deps) > 0 {
		a.fail(a.doc.root, "the nodes depend on one another in a circle: none begins")
	}
}
