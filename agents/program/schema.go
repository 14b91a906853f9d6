package program

import (
	"encoding/json"
	"maps"
	"slices"
)

// plainSchema is a schema that claude's tool for an answer can have: of an object, without what its API refuses. "" where
// it is another: then the answer is asked for in the prompt alone, and held against the schema when it is there.
func plainSchema(schema json.RawMessage) string {
	var members map[string]json.RawMessage
	var kind string
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(members["type"], &kind) != nil || kind != "object" {
		return ""
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "$ref"} {
		if members[key] != nil {
			return ""
		}
	}
	delete(members, "$schema")
	text, err := json.Marshal(members)
	if err != nil {
		return ""
	}
	return string(text)
}

// Strict is a schema in the form that OpenAI's service takes: every member of an object is asked for, and no other. One that
// need not be there may be null then, where mayNull; else a schema with such a one has no such form. nil where it has none:
// then the answer is asked for in the prompt alone, and held against the schema when it is there.
func Strict(schema json.RawMessage, mayNull bool) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil || s["type"] != "object" || !strict(s, mayNull, 0) {
		return nil
	}
	out, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return out
}

// Bounds of what the service takes.
const (
	maxStrictDepth   = 5
	maxStrictMembers = 100 // of one object
)

// strict changes a schema to that form, and says whether it has one.
func strict(s map[string]any, mayNull bool, depth int) bool {
	delete(s, "$schema")
	for key := range s {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "items", "enum", "const", "description", "title"}, key) {
			return false
		}
	}
	switch s["type"] {
	case "object":
		return strictObject(s, mayNull, depth)
	case "array":
		items, ok := s["items"].(map[string]any)
		return ok && strict(items, mayNull, depth+1)
	case "string", "number", "integer", "boolean":
		return true
	}
	return false
}

func strictObject(s map[string]any, mayNull bool, depth int) bool {
	properties, ok := s["properties"].(map[string]any)
	if more, said := s["additionalProperties"]; !ok || said && more != false || depth > maxStrictDepth || len(properties) > maxStrictMembers {
		return false
	}
	asked, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, ok := properties[name].(map[string]any)
		if !ok || !strict(p, mayNull, depth+1) {
			return false
		}
		if slices.Contains(asked, any(name)) {
			continue
		}
		if !mayNull || p["const"] != nil {
			return false
		}
		p["type"] = []any{p["type"], "null"}
		if enum, ok := p["enum"].([]any); ok {
			p["enum"] = append(enum, nil)
		}
	}
	s["required"], s["additionalProperties"] = append([]string{}, slices.Sorted(maps.Keys(properties))...), false
	return true
}
