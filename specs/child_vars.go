package specs

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/layout"
)

// handed is the input for compiling a child run's workflow: the vars known when its parent's run
// starts, and which are not.
type handed struct {
	given map[string]any  // over the defaults; a run's vars, if it has no parent
	late  map[string]bool // known when the child run starts
	said  map[string]bool // of these, those influenced by agents; they count as agents' in the child too
}

// declaredVars returns the vars that a spec declares. Its faults are reported where it is loaded.
func declaredVars(file string, src []byte) []varDoc {
	r := &reader{book{file: file}}
	root := r.parse(src)
	if root == nil {
		return nil
	}
	var doc specDoc
	r.object(root, reflect.ValueOf(&doc).Elem(), topName)
	if doc.Workflow == nil {
		return nil
	}
	return doc.Workflow.Vars.items
}

// hand compiles what a step passes to its child run: the vars named beside `workflow`, or else
// those of the same name here.
func (c *naming) hand(d *stepDoc, s *engine.Step, declared []varDoc, what string) handed {
	h := handed{given: c.varsOf(), late: map[string]bool{}, said: map[string]bool{}}
	maps.Copy(h.late, c.from.late)
	maps.Copy(h.said, c.world.said)
	for _, it := range d.Vars.items {
		what, workflow := what+": vars: "+it.name, d.Workflow.value
		i := slices.IndexFunc(declared, func(v varDoc) bool { return v.Name == it.name })
		if i < 0 {
			names := varNames(declared)
			hint := cmp.Or(c.near(it.name, names), ": it declares "+cmp.Or(strings.Join(names, ", "), "none"))
			c.at(it.key, "%s: workflow %s has no var of this name%s", what, workflow, hint)
			continue
		}
		given := c.varValue(declared[i], it.text, inStep, what, workflow)
		s.ChildVars = append(s.ChildVars, engine.ChildVar{Name: it.name, Value: c.placed(given, it.text.node)})
		delete(h.given, it.name)
		known := false
		if known, h.late[it.name], h.said[it.name] = c.knownNow(it.text); !known {
			continue
		}
		x, err := given.Eval(&engine.Env{Vars: c.from.given})
		if err == nil {
			h.given[it.name] = x
		} else if !strings.Contains(it.text.value, "${{") {
			c.at(it.text.node, "%v", err)
		}
	}
	for _, set := range []map[string]bool{h.late, h.said} {
		maps.DeleteFunc(set, func(_ string, in bool) bool { return !in })
	}
	return h
}

// varValue compiles a text to a value of a var. Its errors begin with what.
func (c *naming) varValue(v varDoc, t scalar, s scope, what, workflow string) engine.Value {
	text := c.text(t, s, what, nil)
	return engine.Value{Source: t.value, Eval: func(env *engine.Env) (any, error) {
		s, err := text.String(env)
		if err != nil {
			return nil, err
		}
		x, err := (&book{}).varOf(v.Var, s, workflow)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		return x, nil
	}}
}

// placed has the errors of a value begin with the place of its text in the file: a run uses a text
// with the file's line numbers.
func (c *naming) placed(v engine.Value, n *yaml.Node) engine.Value {
	eval := v.Eval
	if eval == nil {
		return v
	}
	v.Eval = func(env *engine.Env) (any, error) {
		x, err := eval(env)
		if err != nil {
			return nil, fmt.Errorf("%s/%s.yaml:%d: %w", layout.SpecsDir, c.spec.ID, n.Line, err)
		}
		return x, nil
	}
	return v
}

// knownNow reports whether a text's value is known when the run starts, or only later, and whether
// agents influence it. It is neither if it reads a required var that is missing, as when a spec is
// only checked.
func (c *naming) knownNow(t scalar) (known, late, said bool) {
	known = true
	for _, p := range c.compiled(t, inStep) {
		if p.code == nil {
			return false, false, false
		}
		said = said || p.code.foreign()
		for _, r := range p.code.reads {
			late = late || r.root != "vars" || c.from.late[r.id] || r.whole && len(c.from.late) > 0
			v := c.variable(r.id)
			if _, given := c.from.given[r.id]; r.root == "vars" && v != nil && v.Required && !given {
				known = false
			}
		}
	}
	return known && !late, late, said
}

// childAnswer compiles `answer` beside `workflow`, with the child's names.
func (c *naming) childAnswer(d *stepDoc, child *compiler, what string) engine.Value {
	t := d.Answer.path
	switch {
	case d.Answer.node == nil: // missing, or reported where it was read
		return engine.Value{}
	case !t.set():
		c.at(d.Answer.node, "%s: beside workflow it is an expression over the names of workflow %s, as steps.ID.answer: "+
			"its steps have the schemas", what, child.spec.ID)
		return engine.Value{}
	case strings.Contains(t.value, "${{"):
		c.at(t.node, "%s: it is an expression already: leave ${{ }} out", what)
		return engine.Value{}
	case strings.TrimSpace(t.value) == "":
		c.at(t.node, "%s: the expression is empty", what)
		return engine.Value{}
	}
	code, faults := child.world.compile(t.value, inChild, asValue, c.near)
	for _, f := range faults {
		c.within(t.node, t.value, byteOffset(t.value, f.offset), "%s: %s (over the names of workflow %s)", what,
			f.message, child.spec.ID)
	}
	return c.placed(code.valueOf(t, what), t.node)
}
