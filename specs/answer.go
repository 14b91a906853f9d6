package specs

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/schema"
)

// answerDoc is a schema: its file's path, or the schema itself.
type answerDoc struct {
	path   scalar
	inline json.RawMessage
	node   *yaml.Node
}

func (d *answerDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind != yaml.MappingNode {
		d.path = r.scalar(n, what, "a schema or the path of its file")
		d.node = d.path.node
		return
	}
	v, ok := r.json(n, what)
	if !ok {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		r.at(n, "%s: cannot be written as JSON: %v", what, err)
		return
	}
	if _, err := schema.Compile(b); err != nil {
		r.at(n, "%s: %v", what, err)
		return
	}
	d.inline, d.node = b, n
}

func (r *reader) json(n *yaml.Node, what string) (any, bool) {
	m := resolve(n)
	switch m.Kind {
	case yaml.SequenceNode:
		out := make([]any, 0, len(m.Content))
		for _, c := range m.Content {
			v, ok := r.json(c, what)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(m.Content); i += 2 {
			k := resolve(m.Content[i])
			if _, twice := out[k.Value]; twice || k.Kind != yaml.ScalarNode {
				r.at(m.Content[i], "%s: key %s is given twice, or is not a text", what, quote(k.Value))
				return nil, false
			}
			v, ok := r.json(m.Content[i+1], what)
			if !ok {
				return nil, false
			}
			out[k.Value] = v
		}
		return out, true
	}
	if isNull(m) {
		return nil, true
	}
	return r.plain(n, what)
}

// readAnswer returns a function that checks a person's answer against the gate's schema; nil if
// there is none. Its errors end with how to give the answer.
func readAnswer(g *engine.Gate) func(json.RawMessage) (json.RawMessage, error) {
	if g.Answer == nil {
		return nil
	}
	return func(raw json.RawMessage) (json.RawMessage, error) {
		s, err := schema.Compile(g.Answer.Source)
		if err != nil {
			return nil, fmt.Errorf("the schema of gate %s cannot be read: %w", g.ID, err)
		}
		answer, err := s.Person(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: `%s %s`", err, engine.Verb(g.ID, engine.OutcomePass), s.Example())
		}
		return answer, nil
	}
}

// schemaText returns a schema file's content as a run keeps it and checks answers against it.
func schemaText(b []byte) (json.RawMessage, error) {
	if _, err := schema.Compile(b); err != nil {
		return nil, err
	}
	text, err := compactJSON(b)
	if err != nil {
		return nil, err
	}
	_, err = schema.Compile(text) // numbers are rounded in it, and some characters are longer
	return text, err
}
