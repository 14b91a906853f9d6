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
)

// handed is the input for compiling a child run's workflow: the vars known when its parent's run
// starts, and which are not.
type handed struct {
	vars map[string]any
	late map[string]bool // known when the child run starts
	said map[string]bool // of these, those influenced by agents; they count as agents' in the child too
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
	h := handed{vars: c.varsOf(), late: map[string]bool{}, said: map[string]bool{}}
	maps.Copy(h.late, c.late)
	maps.Copy(h.said, c.world.said)
	for _, it := range d.Vars.items {
		what, workflow := what+": vars: "+it.name, d.Workflow.value
		i := slices.IndexFunc(declared, func(v varDoc) bool { return v.name == it.name })
		if i < 0 {
			var names []string
			for _, v := range declared {
				names = append(names, v.name)
			}
			hint := cmp.Or(c.near(it.name, names), ": it declares "+cmp.Or(strings.Join(names, ", "), "none"))
			c.at(it.key, "%s: workflow %s has no var of this name%s", what, workflow, hint)
			continue
		}
		v := declared[i]
		want := engine.Var{Name: v.name, Default: v.value, Required: v.required, OneOf: v.oneOf}
		t := c.text(it.text, inStep, what, nil)
		eval := func(env *engine.Env) (any, error) {
			s, err := t.String(env)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.place(it.text.node), err)
			}
			x, err := (&book{}).varOf(want, s, workflow)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.place(it.text.node), what, err)
			}
			return x, nil
		}
		s.ChildVars = append(s.ChildVars,
			engine.ChildVar{Name: it.name, Value: engine.Value{Source: it.text.value, Eval: eval}})
		delete(h.vars, it.name)
		known := false
		if known, h.late[it.name], h.said[it.name] = c.knownNow(it.text); !known {
			continue
		}
		x, err := eval(&engine.Env{Vars: c.given})
		if err == nil {
			h.vars[it.name] = x
		} else if t.Eval == nil {
			_, err := c.varOf(want, t.Source, workflow)
			c.at(it.text.node, "%s: %v", what, err)
		}
	}
	for _, set := range []map[string]bool{h.late, h.said} {
		maps.DeleteFunc(set, func(_ string, in bool) bool { return !in })
	}
	return h
}

// knownNow reports whether a text's value is known when the run starts, or only later, and whether
// agents influence it. It is neither if it reads a required var that is missing, as when a spec is
// only checked.
func (c *naming) knownNow(t scalar) (known, late, said bool) {
	parts, _ := split(t.value)
	known = true
	for _, p := range parts {
		if !p.value {
			continue
		}
		code, _ := c.world.compile(p.source, inStep, asText, c.near)
		if code == nil {
			return false, false, false // reported elsewhere
		}
		said = said || code.foreign()
		for _, r := range code.reads {
			late = late || r.root != "vars" || c.late[r.id] || r.whole && len(c.late) > 0
			v := c.variable(r.id)
			if _, given := c.given[r.id]; r.root == "vars" && v != nil && v.required && !given {
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
	if code == nil {
		return engine.Value{Source: t.value}
	}
	return engine.Value{Source: t.value, Eval: func(env *engine.Env) (any, error) {
		v, err := code.value(env)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %s: %w", c.place(t.node), what, t.value, err)
		}
		return v, nil
	}}
}

// place returns a node's place for messages during a run, which uses a text with the file's line
// numbers.
func (c *naming) place(n *yaml.Node) string {
	return fmt.Sprintf("%s/%s.yaml:%d", Dir, c.spec.ID, n.Line)
}
