package program

import (
	"encoding/json"
	"maps"
	"slices"
)

// plainSchema returns a schema that claude's answer tool accepts: for an object, without what its
// API refuses. For others it returns "": then only the prompt asks for the answer, which is
// validated afterwards.
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

// Strict returns a schema in the form of OpenAI's service: every member of an object is required,
// and no others are allowed. With mayNull, an optional member may be null; without, such a schema
// has no such form. If there is none, it returns nil: then only the prompt asks for the answer,
// which is validated afterwards.
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

// Limits of the service.
const (
	maxStrictDepth   = 5
	maxStrictMembers = 100 // of one object
)

// strict converts a schema in place, and reports whether that is possible.
func strict(s map[string]any, mayNull bool, depth int) bool {
	delete(s, "$schema")
	for key := range s {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "items", "enum",
			"const", "description", "title"}, key) {
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
	if more, said := s["additionalProperties"]; !ok || said && more != false || depth > maxStrictDepth ||
		len(properties) > maxStrictMembers {
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
