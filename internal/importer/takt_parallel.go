package importer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// parallel makes a fork of x, its children, and the join that looks at what they said.
func (t *takt) parallel(x *taktStep) {
	first := t.flow.step(x.enter)
	tolerant := slices.ContainsFunc(x.rules, func(r taktRule) bool { return strings.Contains(r.condition, `"error"`) })
	t.selection(x, first)
	trees := get(x.n, "rules")
	for _, c := range x.children {
		rules := taktRules(c.n)
		for _, r := range items(at(trees, "parallel", c.name)) {
			rules = append(rules, taktRule{n: r, condition: str(get(r, "condition"))})
		}
		if call := get(c.n, "call"); str(call) != "" {
			t.call(c.n, c.step, call)
		} else {
			t.agent(c.n, x, c.step, rules)
		}
		if tolerant {
			c.step.onFail = x.leave.id
		}
	}
}

// selection has an agent select which of the pool are done.
func (t *takt) selection(x *taktStep, first *step) {
	var names, lines []string
	for _, c := range x.children {
		if c.pool {
			names = append(names, c.name)
			lines = append(lines, "- "+literal(c.name)+": "+oneLine(get(c.n, "description")))
			c.step.when = strconv.Quote(c.name) + ` in (` + answerOf(first.id, "selected") + ` ?? [])`
		}
	}
	if len(names) == 0 {
		return
	}
	sel := at(x.n, "parallel", "selection", "selector")
	first.role, first.reads = "selector", true
	if p := str(get(sel, "persona")); p != "" {
		first.role = slug(p, 60)
		first.context = append(first.context, t.facetFiles("personas", get(sel, "persona"))...)
	}
	body, _ := t.instruction(get(sel, "instruction"), x, first)
	body = cmp.Or(body, "Select who is to look at the work of this run.")
	first.prompt = "The task of this run:\n\n${{vars.task}}\n\n" + body + "\n\nThe candidates:\n" + strings.Join(lines,
		"\n") +
		"\n\nName those that apply in `selected`; none is an answer too."
	list := kindSchema("array")
	add(list, "items", enumSchema(names))
	first.answer = objectSchema(field{"selected", list})
}
