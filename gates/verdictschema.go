package gates

import (
	"encoding/json"
	"maps"
	"slices"

	"sluice/engine"
)

// VerdictSchema returns a JSON Schema of the verdicts a reviewer may give, for programs that
// enforce a schema. It is weaker than ReadVerdict, which still reads the result. own is the schema
// of the gate's `answer`; nil = none.
func VerdictSchema(allowed, rubric []string, computed bool, own *engine.Schema) json.RawMessage {
	type m = map[string]any
	text := m{"type": "string"}
	verdict := m{"type": "string"}
	if len(allowed) > 0 {
		verdict["enum"] = allowed
	}
	properties := m{
		"verdict": verdict,
		"feedback": m{"type": "string",
			"description": "what is wrong and what would be right, so that it can be fixed from these words alone"},
		"summary": m{"type": "string", "description": "for people, in one or two sentences"},
		"findings": m{"type": "array", "items": m{"type": "object", "properties": m{
			"severity": text, "file": text, "line": m{"type": "integer"}, "message": text}, "required": []string{"message"}}},
	}
	required := []string{"feedback"}
	if !computed {
		required = append(required, "verdict")
	}
	number := m{"type": "number", "description": "0 to 100"}
	if len(rubric) == 0 {
		properties["score"] = number
	} else {
		each := m{}
		for _, r := range rubric {
			each[r] = number
		}
		properties["scores"] = m{"type": "object", "properties": each, "required": rubric}
		required = append(required, "scores")
	}
	schema := m{"type": "object", "properties": properties, "required": required}
	if own != nil {
		if schema = withOwn(schema, own.Source); schema == nil {
			return own.Source
		}
	}
	out, err := json.Marshal(schema)
	if err != nil {
		return nil // the rubric is not text
	}
	return out
}

// withOwn merges the gate's own schema; nil if it cannot be merged and stands alone.
func withOwn(schema map[string]any, source json.RawMessage) map[string]any {
	var own map[string]any
	if json.Unmarshal(source, &own) != nil || own["type"] != "object" || own["additionalProperties"] == false {
		return nil
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	mine, _ := own["properties"].(map[string]any) // none adds none
	maps.Copy(properties, mine)
	required, _ := schema["required"].([]string)
	asked, _ := own["required"].([]any)
	for _, a := range asked {
		if name, ok := a.(string); ok && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	own["properties"], own["required"] = properties, required
	return own
}
