package importer

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/text"
	"sluice/specs"
)

// maxComment bounds a comment of a spec, in bytes; the report has the rest.
const maxComment = 600

// spec returns a flow as the text of a spec, in our layout.
func (f *flow) spec() ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	add(root, "workflow", f.head())
	steps := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range f.steps {
		steps.Content = append(steps.Content, s.node())
	}
	add(root, "steps", steps)
	if len(f.gates) > 0 {
		gates := &yaml.Node{Kind: yaml.SequenceNode}
		for _, g := range f.gates {
			gates.Content = append(gates.Content, g.node())
		}
		add(root, "gates", gates)
	}
	b, err := encoded("# yaml-language-server: $schema=../workflow.schema.json\n"+comments(f.notes), root)
	if err != nil {
		return nil, err
	}
	if out, err := specs.Format(b); err == nil {
		return out, nil
	}
	return b, nil // the loader says what is wrong with it
}

// encoded returns YAML below lines of comments.
func encoded(above string, root *yaml.Node) ([]byte, error) {
	b := bytes.NewBufferString(above + "\n")
	enc := yaml.NewEncoder(b)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(root), enc.Close())
	return b.Bytes(), err
}

func (f *flow) head() *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	addText(m, "id", f.id)
	addText(m, "name", f.name)
	addText(m, "description", f.description)
	vars := &yaml.Node{Kind: yaml.MappingNode}
	for _, v := range f.vars {
		add(vars, v.name, v.yaml())
	}
	addAll(m, "vars", vars)
	addText(m, "workspace", f.workspace)
	addAll(m, "limits", numbers(f.limits))
	addAll(m, "protect", list(f.protect))
	return m
}

func (v variable) yaml() *yaml.Node {
	m := flowMap()
	if v.value == "" && !v.optional && v.node == nil {
		add(m, "required", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	} else if v.node != nil {
		add(m, "default", v.node)
	} else {
		add(m, "default", quoted(v.value))
	}
	if v.description != "" {
		add(m, "description", quoted(text.Clean(v.description, 200)))
	}
	return m
}

func (s *step) node() *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, HeadComment: comments(s.notes)}
	addText(m, "id", s.id)
	addText(m, "name", s.name)
	if len(s.needs) > 0 || s.wantsNeeds {
		add(m, "needs", list(s.needs))
	}
	addText(m, "when", s.when)
	addAll(m, "agent", s.agent())
	addText(m, "run", s.shell)
	addAll(m, "run", list(s.argv))
	addAll(m, "env", entries(s.env))
	addText(m, "workflow", s.workflow)
	if s.tasks.key != "" {
		each, tasks := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
		addText(tasks, s.tasks.key, s.tasks.value)
		add(each, "tasks", tasks)
		add(m, "for_each", each)
	}
	addAll(m, "vars", entries(s.vars))
	if s.answer != nil {
		add(m, "answer", s.answer)
	}
	addText(m, "answer", s.gives)
	addAll(m, "outputs", outputs(s.outputs))
	addAll(m, "success_criterion", list(s.criteria))
	addText(m, "timeout", s.timeout)
	addText(m, "idle_timeout", s.idle)
	addCount(m, "restarts", s.restarts)
	addText(m, "gate", s.gate)
	if s.gate == "" {
		addTargets(m, "next_step", s.next)
		addText(m, "on_fail", s.onFail)
	}
	return m
}

func (s *step) agent() *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	addText(m, "type", s.role)
	if s.reads {
		add(m, "reads", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	addAll(m, "context", list(s.context))
	addText(m, "session", s.session)
	addText(m, "prompt", s.prompt)
	return m
}

func (g *gate) node() *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, HeadComment: comments(g.notes)}
	addText(m, "id", g.id)
	r := &yaml.Node{Kind: yaml.MappingNode}
	addText(r, "level", g.level)
	addText(r, "agent_type", g.agent)
	addText(r, "run", g.run)
	if g.fromStep {
		addText(r, "from", "step")
	}
	addText(r, "prompt", g.prompt)
	add(m, "reviewer", r)
	if g.answer != nil {
		add(m, "answer", g.answer)
	}
	addAll(m, "verdict", entries(g.verdict))
	pass := flowMap()
	if g.passGate != "" {
		addText(pass, "next_gate", g.passGate)
	} else {
		addTargets(pass, "next_step", g.pass)
	}
	add(m, "on_pass", pass)
	fail := flowMap()
	addText(fail, "next_step", g.onFail)
	addAll(m, "on_fail", fail)
	addAll(m, "routes", entries(g.routes))
	addCount(m, "max_failures", g.maxFailures)
	addText(m, "on_exhausted", g.onExhausted)
	return m
}

// add appends an entry to a mapping.
func add(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, quoted(key), value)
}

// addAll appends an entry with a list or a mapping, unless that is empty.
func addAll(m *yaml.Node, key string, value *yaml.Node) {
	if len(value.Content) > 0 {
		add(m, key, value)
	}
}

// addText appends an entry with a text, unless that is empty.
func addText(m *yaml.Node, key, value string) {
	if value != "" {
		add(m, key, quoted(value))
	}
}

func addCount(m *yaml.Node, key string, n int) {
	if n > 0 {
		add(m, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)})
	}
}

// addTargets writes one target as a text, several as a list.
func addTargets(m *yaml.Node, key string, to []string) {
	if len(to) == 1 {
		addText(m, key, to[0])
	} else {
		addAll(m, key, list(to))
	}
}

func flowMap() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle} }

// quoted returns a text; the library quotes what would read as another kind.
func quoted(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if strings.Contains(s, "\n") {
		n.Value = trimLines(s)
		n.Style = yaml.LiteralStyle
	}
	return n
}

// trimLines removes spaces at line ends: a block of text cannot be written with them.
func trimLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\t", "    "), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func list(of []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	if len(strings.Join(of, ", ")) > 90 {
		n.Style = 0
	}
	for _, s := range of {
		n.Content = append(n.Content, quoted(s))
	}
	return n
}

func entries(of []entry) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range of {
		add(m, e.key, quoted(e.value))
	}
	return m
}

func numbers(of []entry) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range of {
		add(m, e.key, &yaml.Node{Kind: yaml.ScalarNode, Value: e.value})
	}
	return m
}

func outputs(of []entry) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range of {
		if e.value == "" {
			n.Content = append(n.Content, quoted(e.key))
			continue
		}
		m := &yaml.Node{Kind: yaml.MappingNode}
		addText(m, e.key, e.value)
		n.Content = append(n.Content, m)
	}
	return n
}

func comments(notes []string) string {
	var out []string
	for _, n := range notes {
		out = append(out, comment(n))
	}
	return strings.Join(out, "\n")
}

// comment returns words as lines of a comment, each at most about 100 columns wide.
func comment(words string) string {
	var out []string
	line := "#"
	for w := range strings.FieldsSeq(text.Clean(words, maxComment)) {
		if len(line)+1+len(w) > 98 && line != "#" {
			out = append(out, line)
			line = "#"
		}
		line += " " + w
	}
	return strings.Join(append(out, line), "\n")
}

// stubScript returns the script of the flow's stand-ins; nil if none needs one.
func (f *flow) stubScript() ([]byte, error) {
	if len(f.stubs) == 0 {
		return nil, nil
	}
	steps := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range f.stubs {
		m := flowMap()
		add(m, "answer", s.answer)
		add(steps, s.step, m)
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	add(root, "steps", steps)
	return encoded("# What stand-ins answer in `sluice run "+f.id+" --stub`, so that the work goes forward.", root)
}
