package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/layout"
)

// shape makes the steps of ours that a step of takt is: itself, or a fork, its children and a join.
func (t *takt) shape(x *taktStep) {
	var sides []*step
	for _, c := range x.children {
		c.step = &step{id: t.ids.id(c.name)}
		sides = append(sides, c.step)
	}
	x.leave = t.flow.fork(x.enter, sides, func() string { return t.ids.id(x.name + "-join") })
}

// choose finds where the pass of each step leads.
func (t *takt) choose() {
	targets := map[string][]string{}
	for _, x := range t.nodes {
		targets[x.name] = []string{}
		for _, r := range x.rules {
			if r.word == "" && !r.asks && r.next != "" && r.next != "ABORT" {
				targets[x.name] = append(targets[x.name], r.next)
			}
		}
	}
	to := passes(t.nodes[0].name, targets)
	for _, x := range t.nodes {
		x.passes = to[x.name]
	}
}

// make fills in the steps of x, and its gate.
func (t *takt) make(x *taktStep) {
	if t.err != nil {
		return
	}
	n := x.n
	switch {
	case len(x.children) > 0:
		t.parallel(x)
	case str(get(n, "call")) != "":
		x.callee = t.call(n, x.leave, get(n, "call"))
	case str(get(n, "mode")) == "system" || get(n, "effects") != nil:
		x.leave.notes = append(x.leave.notes, "left: takt does this step itself; a person is asked to")
	default:
		t.agent(n, x, x.leave, x.rules)
	}
	t.gate(x)
	t.standIn(x)
}

// agent makes a step that an agent does.
func (t *takt) agent(n *yaml.Node, x *taktStep, s *step, rules []taktRule) {
	s.role = taktRole(n)
	s.name = str(get(n, "persona_name"))
	s.reads = t.reads(n)
	s.session = slugOrNone(str(get(n, "session_key")))
	t.facets(n, s)
	body, source := t.instruction(cmp.Or(get(n, "instruction"), get(n, "instruction_template")), x, s)
	var parts []string
	if !strings.Contains(source, "{task}") {
		parts = append(parts, "The task of this run:\n\n${{vars.task}}")
	}
	if prev := t.previous(x); prev != "" && !strings.Contains(source, "{previous_response}") && !isFalse(get(n,
		"pass_previous_response")) {
		parts = append(parts, "What the step before said:\n\n"+prev)
	}
	if body != "" {
		parts = append(parts, body)
	}
	s.answer = objectSchema(field{"summary", textSchema("what those who come next have to know")})
	parts = append(parts, t.asked(n, s, rules)...)
	if t != t.top {
		parts = append(parts, "Reports of the calling run are in ${{vars.reports}}.")
	}
	s.prompt = strings.Join(parts, "\n\n")
	t.dynamic(n, s)
	t.quality(n, s)
}

// asked adds what the answer has: reports, and which condition holds. It returns what the prompt says
// of them.
func (t *takt) asked(n *yaml.Node, s *step, rules []taktRule) (says []string) {
	for _, r := range taktReports(n) {
		addField(s.answer, field{r.field, textSchema("the report " + r.name + ", in Markdown")})
		s.outputs = append(s.outputs, entry{layout.RunsDir + "/${{run}}/files/" + r.name, "answer." + r.field})
		words := "`" + r.field + "` of your answer is the report " + r.name + "."
		if files := t.facetFiles("output-contracts", r.format); len(files) > 0 {
			s.context = append(s.context, files...)
			words = strings.TrimSuffix(words, ".") + ", as `" + files[0] + "` says."
		}
		says = append(says, words)
	}
	var labels []string
	for _, r := range rules {
		label, _ := splitCondition(r.condition)
		if label != "" && !strings.HasPrefix(label, "all(") && !strings.HasPrefix(label, "any(") && !slices.Contains(labels,
			label) {
			labels = append(labels, label)
		}
		if words := str(get(r.n, "appendix")); words != "" {
			says = append(says, "If it is `"+literal(strings.ReplaceAll(label, "`",
				"'"))+"`, say in your summary also:\n"+literal(words))
		}
		for _, f := range structuredFields(r.condition, str(get(n, "name"))) {
			addField(s.answer, field{f, textSchema("one of the values that the conditions of this step name")})
		}
	}
	if len(labels) > 0 {
		addField(s.answer, field{"outcome", describe(enumSchema(labels), "which of these holds")})
	}
	return says
}

// taktRole is the persona, by which the settings choose who does the step.
func taktRole(n *yaml.Node) string {
	p := str(get(n, "persona"))
	if p == "" || strings.ContainsAny(p, "\n ") {
		p = str(get(n, "name"))
	}
	return slug(strings.TrimSuffix(path.Base(p), ".md"), 60)
}

// reads reports whether a step changes nothing.
func (t *takt) reads(n *yaml.Node) bool {
	if e := get(n, "edit"); e != nil {
		return !isTrue(e)
	}
	caps := texts(get(n, "capabilities"))
	if len(caps) == 0 {
		caps = texts(get(t.doc.root, "capabilities"))
	}
	return slices.Contains(caps, "readonly") && !slices.Contains(caps, "edit")
}

func isFalse(n *yaml.Node) bool { return n != nil && n.ShortTag() == "!!bool" && str(n) == "false" }

func slugOrNone(s string) string {
	if s == "" {
		return ""
	}
	return slug(s, 60)
}

// facets writes what an agent reads first: the rules of all steps, the persona, policies, knowledge.
func (t *takt) facets(n *yaml.Node, s *step) {
	for _, r := range items(at(t.doc.root, "all_steps", "rules")) {
		ref := cmp.Or(get(r, "ref"), r)
		file := t.src.findIn("rules", path.Base(str(ref))+".md")
		if file == "" {
			t.leave(ref, "no rule %q was found in this tree", str(ref))
			continue
		}
		words, err := t.src.text(file)
		if err != nil {
			t.fail(ref, "rule %q: %v", str(ref), err)
			return
		}
		s.context = append(s.context, t.prompt(t.top.flow, "rules-"+str(ref), t.words(words, &taktStep{})))
	}
	s.context = append(s.context, t.facetFiles("personas", get(n, "persona"))...)
	s.context = append(s.context, t.facetFiles("policies", get(n, "policy"))...)
	s.context = append(s.context, t.facetFiles("knowledge", get(n, "knowledge"))...)
	slices.Sort(s.context)
	s.context = slices.Compact(s.context)
}

// dynamic lists the candidates of a pool, of which the agent reads those that apply.
func (t *takt) dynamic(n *yaml.Node, s *step) {
	name := str(at(n, "dynamic_facets", "pool"))
	if name == "" {
		return
	}
	pool := at(t.doc.root, "facet_pools", name)
	of := &takt{reader: t.reader, doc: t.doc, top: t.top, flow: t.flow}
	if uses := str(get(pool, "uses")); uses != "" {
		pool = nil
		if f := t.src.findIn("facet-pools", path.Base(uses)+".yaml", path.Base(uses)+".yml"); f != "" {
			if d, ok := t.open(get(n, "dynamic_facets"), f); ok {
				pool, of.doc = d.root, d
			}
		}
	}
	var lines []string
	for _, c := range items(get(pool, "candidates")) {
		files := append(of.facetFiles("policies", get(c, "policy")), of.facetFiles("knowledge", get(c, "knowledge"))...)
		for _, f := range files {
			lines = append(lines, "- `"+f+"`: "+oneLine(get(c, "description")))
		}
	}
	if len(lines) > 0 {
		s.prompt += "\n\nOf these, read those that apply:\n" + strings.Join(lines, "\n")
	}
}

// quality makes criteria of quality gates.
func (t *takt) quality(n *yaml.Node, s *step) {
	for _, q := range items(get(n, "quality_gates")) {
		switch cmd := str(get(q, "command")); {
		case cmd != "" && !strings.ContainsAny(cmd, "\n$`"):
			s.criteria = append(s.criteria, cmd+" exits 0")
		case cmd != "":
			t.near(get(n, "quality_gates"), "a command with $ or several lines is left: make it a script")
		case str(q) != "":
			s.prompt += "\n\nBefore you are done: " + literal(str(q))
		}
	}
}

// call makes a step that runs another workflow with its arguments; its answer is how that ended.
func (t *takt) call(n *yaml.Node, s *step, at *yaml.Node) *takt {
	name := str(at)
	key := name + "\n" + argsKey(get(n, "args"))
	inner := t.top.called[key]
	if inner == nil {
		d, ok := t.find(at, name)
		switch {
		case t.err != nil:
			return nil
		case !ok:
			t.leave(at, "no workflow %q was found in this tree: a person does it", name)
			t.flow.byHand(s, "takt calls the workflow "+name+" here, which was not found at the import.")
			return nil
		case t.depth >= maxChildren || len(t.flows) >= maxSources:
			t.leave(at, "ours runs workflows within one another at most 4 deep, and 60 in all: a person starts it")
			t.flow.byHand(s, "takt calls the workflow "+name+" here. Start it by hand.")
			return nil
		}
		inner = &takt{reader: t.reader, doc: d, top: t.top}
		t.top.called[key] = inner
		t.depth++
		inner.read(values(get(n, "args")))
		t.depth--
	}
	if inner.flow == nil || t.err != nil {
		if t.err == nil {
			t.fail(at, "workflow %q calls itself", name)
		}
		return nil
	}
	s.workflow = inner.flow.id
	reports := layout.RunsDir + "/${{run}}/files"
	if t != t.top {
		reports += " and ${{vars.reports}}"
	}
	s.vars = []entry{{"task", "${{vars.task}}"}, {"reports", reports}}
	gives := `"COMPLETE"`
	for _, r := range slices.Backward(inner.returns) {
		gives = fmt.Sprintf("gates[%q]?.verdict == %q ? %q : %s", r.gate, r.outcome, r.word, gives)
	}
	s.gives = "{outcome: " + gives + "}"
	return inner
}

// argsKey is a text for the arguments of a call, the same for equal ones.
func argsKey(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	b, err := yaml.Marshal(clone(n))
	if err != nil {
		return fmt.Sprint(n)
	}
	return string(b)
}
