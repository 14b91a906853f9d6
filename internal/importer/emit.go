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
	root := mapOf("workflow", f.head())
	add(root, "steps", sequence(f.steps, (*step).node))
	addAll(root, "gates", sequence(f.gates, (*gate).node))
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
	m := mapOf("id", quoted(f.id))
	addText(m, "name", f.name)
	addText(m, "description", f.description)
	vars := blockMap()
	for _, v := range f.vars {
		add(vars, v.name, v.node())
	}
	addAll(m, "vars", vars)
	addText(m, "workspace", f.workspace)
	addAll(m, "limits", entries(f.limits, bare))
	addAll(m, "protect", list(f.protect))
	return m
}

func (v variable) node() *yaml.Node {
	m := flowMap()
	if v.value == nil {
		add(m, "required", bare("true"))
	} else {
		add(m, "default", v.value)
	}
	addText(m, "description", text.Clean(v.description, 200))
	return m
}

func (s *step) node() *yaml.Node {
	m := mapOf("id", quoted(s.id))
	m.HeadComment = comments(s.notes)
	addText(m, "name", s.name)
	if len(s.needs) > 0 || s.wantsNeeds {
		add(m, "needs", list(s.needs))
	}
	addText(m, "when", s.when)
	addAll(m, "agent", s.agent())
	addText(m, "run", s.shell)
	addAll(m, "run", list(s.argv))
	addAll(m, "env", entries(s.env, quoted))
	addText(m, "workflow", s.workflow)
	if s.tasks.key != "" {
		add(m, "for_each", mapOf("tasks", s.tasks.node()))
	}
	addAll(m, "vars", entries(s.vars, quoted))
	if s.answer != nil {
		add(m, "answer", s.answer)
	}
	addText(m, "answer", s.gives)
	addAll(m, "outputs", sequence(s.outputs, entry.node))
	addAll(m, "success_criterion", list(s.criteria))
	addText(m, "timeout", s.timeout)
	addText(m, "idle_timeout", s.idle)
	addCount(m, "restarts", s.restarts)
	if s.gate != nil {
		addText(m, "gate", s.gate.id)
	} else {
		addNext(m, s.next)
		addText(m, "on_fail", s.onFail)
	}
	return m
}

func (s *step) agent() *yaml.Node {
	m := blockMap()
	addText(m, "type", s.role)
	if s.reads {
		add(m, "reads", bare("true"))
	}
	addAll(m, "context", list(s.context))
	addText(m, "session", s.session)
	addText(m, "prompt", s.prompt)
	return m
}

func (g *gate) node() *yaml.Node {
	m := mapOf("id", quoted(g.id))
	m.HeadComment = comments(g.notes)
	r := mapOf("level", quoted(g.level))
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
	addAll(m, "verdict", entries(g.verdict, quoted))
	pass := flowMap()
	if g.passGate != "" {
		addText(pass, "next_gate", g.passGate)
	} else {
		addNext(pass, g.pass)
	}
	add(m, "on_pass", pass)
	fail := flowMap()
	addText(fail, "next_step", g.onFail)
	addAll(m, "on_fail", fail)
	addAll(m, "routes", entries(g.routes, quoted))
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
		add(m, key, bare(strconv.Itoa(n)))
	}
}

// addNext writes one target as a text, several as a list.
func addNext(m *yaml.Node, to []string) {
	if len(to) == 1 {
		addText(m, "next_step", to[0])
	} else {
		addAll(m, "next_step", list(to))
	}
}

func blockMap() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }
func flowMap() *yaml.Node  { return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle} }

// mapOf returns a mapping with one entry.
func mapOf(key string, value *yaml.Node) *yaml.Node {
	m := blockMap()
	add(m, key, value)
	return m
}

// bare returns a number, or true or false.
func bare(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

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

func (e entry) node() *yaml.Node { return mapOf(e.key, quoted(e.value)) }

// entries returns a mapping, whose values value makes.
func entries(of []entry, value func(string) *yaml.Node) *yaml.Node {
	m := blockMap()
	for _, e := range of {
		add(m, e.key, value(e.value))
	}
	return m
}

// sequence returns a list, whose items node makes.
func sequence[T any](of []T, node func(T) *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range of {
		n.Content = append(n.Content, node(item))
	}
	return n
}

// comments returns each note as lines of a comment, each at most about 100 columns wide.
func comments(notes []string) string {
	var out []string
	for _, n := range notes {
		line := "#"
		for w := range strings.FieldsSeq(text.Clean(n, maxComment)) {
			if len(line)+1+len(w) > 98 && line != "#" {
				out = append(out, line)
				line = "#"
			}
			line += " " + w
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// stubScript returns the script of the flow's stand-ins; nil if none needs one.
func (f *flow) stubScript() ([]byte, error) {
	if len(f.stubs) == 0 {
		return nil, nil
	}
	steps := blockMap()
	for _, s := range f.stubs {
		m := flowMap()
		add(m, "answer", s.answer)
		add(steps, s.step, m)
	}
	return encoded("# What stand-ins answer in `sluice run "+f.id+" --stub`, so that the work goes forward.",
		mapOf("steps", steps))
}
