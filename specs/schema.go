package specs

import (
	"bytes"
	"encoding/json"
	"reflect"

	"sluice/internal/ids"
)

// SchemaFile is the JSON Schema's name in this folder, and in `.workflow/` for a spec's header line
//
//	# yaml-language-server: $schema=../workflow.schema.json
const SchemaFile = "workflow.schema.json"

type object = map[string]any

// Schema returns the JSON Schema of the language (draft-07, which editors support best), generated
// from the language's types. Load checks what a schema cannot express.
func Schema() []byte {
	s := objectSchema(reflect.TypeFor[specDoc]())
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "sluice workflow"
	s["description"] = "A workflow of sluice: .workflow/specs/<id>.yaml"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic("specs: the schema is no JSON: " + err.Error())
	}
	return b.Bytes()
}

// ruled is a language type whose keys depend on one another.
type ruled interface{ rules() []any }

func objectSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		s := valueSchema(t.Field(f.index).Type)
		if f.enum != nil {
			s = object{"enum": f.enum}
		}
		s["description"] = f.doc
		properties[f.key] = s
		if f.need {
			required = append(required, f.key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if r, ok := reflect.New(t).Interface().(ruled); ok {
		s["allOf"] = r.rules()
	}
	return s
}

func valueSchema(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.New(t).Interface().(shape); ok {
		return s.schema()
	}
	if t.Kind() == reflect.Slice {
		return object{"type": "array", "minItems": 1, "items": valueSchema(t.Elem())}
	}
	return objectSchema(t)
}

// Parts of the schema.

// scalarTypes are the YAML kinds of a text: `name: 4` is the text "4".
func scalarTypes() []string { return []string{"string", "number", "boolean"} }

// namePattern is identifier as a pattern.
const namePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

func textSchema() object { return object{"type": scalarTypes()} }

func filledSchema() object { return object{"type": scalarTypes(), "minLength": 1} }

func anyOf(these ...any) object { return object{"anyOf": these} }

func listOf(items object) object { return object{"type": "array", "items": items} }

func (*scalar) schema() object { return textSchema() }

func (*ident) schema() object {
	return object{"type": scalarTypes(), "pattern": ids.Pattern, "not": object{"type": "string", "pattern": `\.\.`}}
}

func (*textList) schema() object { return listOf(filledSchema()) }

func (*labelsDoc) schema() object {
	return object{"type": "array", "items": (&ident{}).schema(), "minItems": 1, "maxItems": ids.MaxLabels,
		"uniqueItems": true}
}

func (*pathList) schema() object {
	s := filledSchema()
	s["not"] = object{"type": "string", "pattern": `^[/~]|\\|(^|/)\.\.(/|$)|(^|/)\.git(/|$)`}
	return listOf(s)
}

func (*exprDoc) schema() object { return object{"type": scalarTypes(), "pattern": `\S`} }

func (*commandDoc) schema() object {
	return anyOf(object{"type": scalarTypes(), "pattern": `\S`, "not": object{"type": "string", "pattern": `\$\{\{`}},
		object{"type": "array", "items": textSchema(), "minItems": 1})
}

func (*targetsDoc) schema() object {
	return anyOf(textSchema(), object{"type": "array", "items": filledSchema(), "minItems": 1})
}

func computed() object { return object{"type": "string", "pattern": `\$\{\{`} }

func (*countDoc) schema() object {
	return anyOf(object{"type": "integer", "minimum": 0, "maximum": maxCount}, computed())
}

func (*spanDoc) schema() object {
	return anyOf(object{"type": "string",
		"pattern": `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`}, computed())
}

func (*number) schema() object {
	return anyOf(object{"type": "number", "minimum": 0}, computed())
}

func limitSchema(bound object) object {
	return anyOf(bound, object{"type": "object", "additionalProperties": false, "required": []string{"max"},
		"properties": object{"max": bound, "on_hit": object{"enum": []string{"ABORTED", "FAILED", "human"}}}})
}

func (l *spanLimit) schema() object   { return limitSchema(l.max.schema()) }
func (l *countLimit) schema() object  { return limitSchema(l.max.schema()) }
func (l *numberLimit) schema() object { return limitSchema(l.max.schema()) }

func (*envDoc) schema() object {
	return object{"type": "object", "additionalProperties": textSchema(),
		"propertyNames": object{"pattern": namePattern,
			"not": object{"type": "string", "pattern": `^[Ss][Ll][Uu][Ii][Cc][Ee]_`}}}
}

func (*tasksDoc) schema() object {
	return anyOf(filledSchema(),
		object{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": (&exprDoc{}).schema(),
			"propertyNames": object{"pattern": `\$\{\{`}})
}

func (*givenDoc) schema() object {
	return object{"type": "object", "additionalProperties": textSchema(),
		"propertyNames": object{"pattern": namePattern}}
}

func (*routesDoc) schema() object {
	return object{"type": "object", "additionalProperties": textSchema(),
		"propertyNames": object{"pattern": ids.Pattern,
			"not": object{"enum": []string{"pass", "fail", "veto", "done", "human"}}}}
}

func (*verdictDoc) schema() object {
	return anyOf((&exprDoc{}).schema(),
		object{"type": "object", "minProperties": 1, "additionalProperties": (&exprDoc{}).schema(),
			"propertyNames": object{"pattern": ids.Pattern}})
}

func (*outputsDoc) schema() object {
	return listOf(anyOf(filledSchema(),
		object{"type": "object", "minProperties": 1, "additionalProperties": (&exprDoc{}).schema()}))
}

func (*criteriaDoc) schema() object {
	one := []any{
		(&exprDoc{}).schema(),
		object{"type": "object", "additionalProperties": false, "required": []string{"run"},
			"properties": object{"run": (&commandDoc{}).schema(), "folder": object{"type": "boolean"}}},
		object{"type": "object", "additionalProperties": false, "required": []string{"file"},
			"properties": object{"file": filledSchema(), "non_empty": object{"type": "boolean"},
				"folder": object{"type": "boolean"}}},
	}
	return anyOf(append(one, object{"type": "array", "minItems": 1, "items": anyOf(one...)})...)
}

func (*answerDoc) schema() object {
	return anyOf(filledSchema(), object{"type": "object"})
}

func (*rolesDoc) schema() object {
	return object{"type": "object", "additionalProperties": objectSchema(reflect.TypeFor[roleDoc]()),
		"propertyNames": object{"pattern": ids.Pattern}}
}

func (*varsDoc) schema() object {
	long := object{"type": "object", "additionalProperties": false,
		"properties": object{"required": object{"type": "boolean"}, "default": textSchema(),
			"one_of":      object{"type": "array", "items": textSchema(), "minItems": 1},
			"description": textSchema()}}
	return object{"type": "object", "additionalProperties": anyOf(textSchema(), long),
		"propertyNames": object{"pattern": namePattern}}
}

func has(keys ...string) object { return object{"required": keys} }

func without(keys ...string) object {
	var any []any
	for _, k := range keys {
		any = append(any, has(k))
	}
	return object{"not": anyOf(any...)}
}

func (*stepDoc) rules() []any {
	return []any{
		// otherwise it only forks, joins or has a gate
		anyOf(has("agent"), has("run"), has("workflow"),
			object{"allOf": []any{object{"propertyNames": object{"enum": waypointKeys()}},
				anyOf(has("gate"), has("next_step"), has("needs"))}}),
		object{"not": has("gate", "next_step")},
		object{"not": has("gate", "on_fail")},
		object{"if": has("workflow"),
			"then": object{"allOf": []any{without("agent", "run"),
				object{"properties": object{"answer": (&exprDoc{}).schema()}}}},
			"else": without("vars")},
	}
}

func (*onPassDoc) rules() []any {
	return []any{object{"oneOf": []any{has("next_step"), has("next_gate")}}}
}

func (*reviewerDoc) rules() []any {
	human := object{"properties": object{"level": object{"const": "human"}}, "required": []string{"level"}}
	return []any{object{"if": human, "then": without("agent_type", "run", "from", "forge"),
		"else": object{"oneOf": []any{has("agent_type"), has("run"), has("from"), has("forge")}}}}
}
