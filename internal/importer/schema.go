package importer

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// field is a property of an answer.
type field struct {
	name   string
	schema *yaml.Node
}

func clone(n *yaml.Node) *yaml.Node {
	n = resolve(n)
	out := *n
	out.Anchor, out.Alias, out.HeadComment, out.LineComment, out.FootComment = "", nil, "", "", ""
	out.Content = nil
	for _, c := range n.Content {
		out.Content = append(out.Content, clone(c))
	}
	return &out
}

func kindSchema(kind string) *yaml.Node {
	m := flowMap()
	addText(m, "type", kind)
	return m
}

func describe(m *yaml.Node, words string) *yaml.Node {
	addText(m, "description", words)
	return m
}

func textSchema(words string) *yaml.Node { return describe(kindSchema("string"), words) }

func enumSchema(of []string) *yaml.Node {
	m := flowMap()
	l := list(of)
	l.Style = yaml.FlowStyle
	add(m, "enum", l)
	return m
}

// objectSchema is an object all of whose properties are required.
func objectSchema(fields ...field) *yaml.Node {
	m := mapOf("type", quoted("object"))
	add(m, "properties", blockMap())
	for _, f := range fields {
		addField(m, f)
	}
	return m
}

// addField adds a required property to an object's schema.
func addField(m *yaml.Node, f field) {
	if get(m, "properties") == nil {
		add(m, "properties", blockMap())
	}
	if props := get(m, "properties"); get(props, f.name) == nil {
		add(props, f.name, f.schema)
	}
	if get(m, "required") == nil {
		add(m, "required", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle})
	}
	if req := get(m, "required"); !slices.Contains(texts(req), f.name) {
		req.Content = append(req.Content, quoted(f.name))
	}
}

// leastAnswer is a small answer that an object's schema takes, with the given values.
func leastAnswer(schema *yaml.Node, given map[string]string) *yaml.Node {
	m := flowMap()
	for _, p := range pairs(get(schema, "properties")) {
		add(m, p.key.Value, leastValue(p.value, given[p.key.Value]))
	}
	return m
}

func leastValue(schema *yaml.Node, given string) *yaml.Node {
	kind := str(get(schema, "type"))
	switch enum := get(schema, "enum"); {
	case given != "" && kind == "boolean":
		return bare(given)
	case given != "":
		return quoted(given)
	case isList(enum) && len(enum.Content) > 0:
		return clone(enum.Content[0])
	case kind == "boolean":
		return bare("false")
	case kind == "number" || kind == "integer":
		return bare("0")
	case kind == "array":
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	case kind == "object":
		return leastAnswer(schema, nil)
	}
	return quoted("stub")
}
