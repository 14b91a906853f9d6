package specs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"gopkg.in/yaml.v3"
)

// answerDoc is a schema: its file's path, or the schema itself.
type answerDoc struct {
	path   text
	inline json.RawMessage
	node   *yaml.Node
}

func (d *answerDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind != yaml.MappingNode {
		v, ok := r.scalar(n, what, "a schema or the path of its file")
		if ok {
			d.path, d.node = text{v, n}, n
		}
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
	if node, why := checkSchema(b); why != "" {
		r.at(n, "%s: %s%s", what, why, node)
		return
	}
	d.inline, d.node = b, n
}

// json turns a node into plain JSON values.
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
				r.at(m.Content[i], "%s: key %s is given twice, or is no text", what, quote(k.Value))
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
	v, ok := r.plain(n, what)
	return v, ok
}

// checkSchema says what is wrong with a JSON Schema for an answer, and where in it.
func checkSchema(b []byte) (where, why string) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return "", fmt.Sprintf("not JSON: %v", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return "", "a schema is an object"
	}
	if at := defaultsDestructive(v, ""); at != "" {
		return " (at " + at + ")", "no schema may give `destructive` a default: what is not marked is for a human"
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", v); err != nil {
		return "", "no JSON Schema: " + firstLine(err.Error())
	}
	if _, err := c.Compile("schema.json"); err != nil {
		return "", "no JSON Schema: " + schemaError(err)
	}
	return "", ""
}

// noLoader lets no schema read a file or the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref to %s: a schema names no other files", url)
}

// schemaError gives the innermost cause, which names the place.
func schemaError(err error) string {
	var bad *jsonschema.SchemaValidationError
	if !errors.As(err, &bad) {
		return firstLine(err.Error())
	}
	var cause *jsonschema.ValidationError
	if !errors.As(bad.Err, &cause) {
		return firstLine(bad.Err.Error())
	}
	for len(cause.Causes) > 0 {
		cause = cause.Causes[0]
	}
	return "at /" + strings.Join(cause.InstanceLocation, "/") + ": " + cause.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

func defaultsDestructive(v any, at string) string {
	switch v := v.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			if d, ok := props["destructive"].(map[string]any); ok {
				if _, ok := d["default"]; ok {
					return at + "/properties/destructive"
				}
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if found := defaultsDestructive(v[k], at+"/"+k); found != "" {
				return found
			}
		}
	case []any:
		for i, x := range v {
			if found := defaultsDestructive(x, fmt.Sprintf("%s/%d", at, i)); found != "" {
				return found
			}
		}
	}
	return ""
}
