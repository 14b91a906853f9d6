package stub

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxLeast bounds how deep Least goes into a schema that refers to itself.
const maxLeast = 24

// maxLeastBytes bounds about how large a value Least makes, and callCost is what each part of it
// counts for at the least: lists within lists grow with the power of their depth.
const (
	maxLeastBytes = 1 << 20
	callCost      = 16
)

// maxLeastText bounds a text that a schema does not bound.
const maxLeastText = 4096

// maxItems bounds the items of a list that a schema asks for.
const maxItems = 50

// agreeing are the words that let work go on, likeliest first: of several values that fit, one of these is taken.
func agreeing() []string {
	return []string{"pass", "approve", "approved", "accept", "done", "ok", "yes", "continue"}
}

// texts are tried where a pattern says how a text looks.
func texts() []string {
	return []string{"stub", "v0.0.1", "0.0.1", "STUB-1", "stub-1", "stub_1", "T1", "1", "a", "A", "2026-01-01",
		"2026-01-01T00:00:00Z",
		"stub@example.org", "https://example.org/stub", "stub.txt", "0000000000000000000000000000000000000000"}
}

// Least returns the least value that a JSON Schema takes: what it requires and no more. It is a
// guess where the schema is tangled (not, if, patterns): what comes of it is held against the
// schema as any agent's answer is.
func Least(schema json.RawMessage) json.RawMessage {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return json.RawMessage("{}")
	}
	out, err := json.Marshal((&least{doc: doc, left: maxLeastBytes}).of(doc, 0))
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

type least struct {
	doc  any
	left int // bytes that the value may still grow by
}

// given is a value that the schema itself names, with what it counts for. Nothing may be written
// into it: it is the schema's.
func (l *least) given(v any) any {
	if b, err := json.Marshal(v); err == nil {
		l.left -= len(b)
	}
	return v
}

func (l *least) of(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if l.left -= callCost; !ok || depth > maxLeast || l.left < 0 {
		return map[string]any{} // true: anything fits
	}
	if c, ok := s["const"]; ok {
		return l.given(c)
	}
	if d, ok := s["default"]; ok {
		return l.given(d)
	}
	if all, ok := s["enum"].([]any); ok && len(all) > 0 {
		for _, word := range agreeing() {
			if slices.Contains(all, any(word)) {
				return word
			}
		}
		return l.given(all[0])
	}
	if some, ok := s["examples"].([]any); ok && len(some) > 0 {
		return l.given(some[0])
	}
	if ref, ok := s["$ref"].(string); ok {
		return l.of(l.at(ref), depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if some, ok := s[key].([]any); ok && len(some) > 0 {
			return joined(l.of(some[0], depth+1), l.plain(s, depth))
		}
	}
	if all, ok := s["allOf"].([]any); ok {
		out := l.plain(s, depth)
		for _, one := range all {
			out = joined(out, l.of(one, depth+1))
		}
		return out
	}
	return l.plain(s, depth)
}

// at returns what a $ref within the schema means.
func (l *least) at(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := l.doc
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if part == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
}

// joined lays one object over another; of two other values it is the second, where that says anything.
func joined(a, b any) any {
	x, xok := a.(map[string]any)
	y, yok := b.(map[string]any)
	switch {
	case xok && yok:
		out := maps.Clone(x)
		maps.Copy(out, y)
		return out
	case yok && len(y) == 0:
		return a
	}
	return b
}

// plain goes by the type of a schema alone.
func (l *least) plain(s map[string]any, depth int) any {
	switch kind := kindOf(s); kind {
	case "object":
		out := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, r := range required {
			if name, ok := r.(string); ok {
				out[name] = l.of(orTrue(props[name]), depth+1)
			}
		}
		return out
	case "array":
		out := []any{}
		for n := range int(min(number(s, "minItems", 0), maxItems)) {
			out = append(out, nth(l.of(orTrue(s["items"]), depth+1), s, n+1))
		}
		return out
	case "string":
		text := leastText(s)
		l.left -= len(text)
		return text
	case "number", "integer":
		return leastNumber(s, kind == "integer")
	case "boolean":
		return false
	case "null":
		return nil
	}
	return map[string]any{}
}

// nth makes the items of a list differ in their ids, or where they must be unique, as far as the
// schema leaves that open.
func nth(v any, list map[string]any, n int) any {
	if n == 1 {
		return v
	}
	items, _ := list["items"].(map[string]any)
	if items["const"] != nil || items["enum"] != nil {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		props, _ := items["properties"].(map[string]any)
		if id, ok := x["id"].(string); ok {
			own := maps.Clone(x)
			own["id"] = numbered(id, props["id"], n)
			return own
		}
	case string:
		if list["uniqueItems"] == true {
			return numbered(x, items, n)
		}
	}
	return v
}

// numbered is a text with a number behind it, or in the place of its own, where the schema takes that.
func numbered(text string, schema any, n int) string {
	s, _ := schema.(map[string]any)
	for _, bound := range []string{"enum", "const", "format", "$ref", "allOf", "anyOf", "oneOf"} {
		if _, is := s[bound]; is {
			return text
		}
	}
	pattern, _ := s["pattern"].(string)
	re, err := regexp.Compile(pattern)
	if err != nil {
		return text
	}
	for _, other := range []string{fmt.Sprintf("%s-%d", text, n),
		strings.TrimRight(text, "0123456789") + strconv.Itoa(n)} {
		if other != text && re.MatchString(other) && float64(len(other)) <= number(s, "maxLength", maxLeastText) {
			return other
		}
	}
	return text
}

// orTrue is the schema, or the one that takes everything: a text then, which is what most things are.
func orTrue(schema any) any {
	if s, ok := schema.(map[string]any); ok && len(s) > 0 {
		return s
	}
	return map[string]any{"type": "string"}
}

// kindOf is the type that the schema asks for, said or meant.
func kindOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if k, ok := one.(string); ok && k != "null" {
				return k
			}
		}
		return "null"
	}
	for _, by := range [][2]string{{"properties", "object"}, {"required", "object"}, {"items", "array"},
		{"minItems", "array"},
		{"pattern", "string"}, {"minLength", "string"}, {"minimum", "number"}, {"maximum", "number"}} {
		if _, ok := s[by[0]]; ok {
			return by[1]
		}
	}
	return ""
}

func leastText(s map[string]any) string {
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := regexp.Compile(pattern); err == nil {
			for _, t := range texts() {
				if re.MatchString(t) {
					return t
				}
			}
		}
	}
	if format, ok := s["format"].(string); ok {
		switch format {
		case "date":
			return "2026-01-01"
		case "date-time":
			return "2026-01-01T00:00:00Z"
		case "email":
			return "stub@example.org"
		case "uri", "uri-reference", "iri":
			return "https://example.org/stub"
		}
	}
	out := "stub"
	if most := number(s, "maxLength", math.MaxInt32); most < float64(len(out)) {
		out = out[:max(int(most), 0)]
	}
	if few := number(s, "minLength", 0); float64(len(out)) < few {
		out = strings.Repeat("stub ", int(min(few, maxLeastText))/5+1)[:int(min(few, maxLeastText))]
	}
	return out
}

// leastNumber is 0, or what is nearest to it.
func leastNumber(s map[string]any, whole bool) any {
	n := max(0, number(s, "minimum", 0))
	if over := number(s, "exclusiveMinimum", -1); n <= over {
		n = math.Floor(over) + 1
	}
	if most := number(s, "maximum", n); n > most {
		n = most
	}
	if few := number(s, "minimum", n); n < few {
		n = few
	}
	if step := number(s, "multipleOf", 0); step > 0 {
		n = math.Ceil(n/step) * step
	}
	if whole {
		n = math.Ceil(n)
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
}

func number(s map[string]any, key string, or float64) float64 {
	if n, ok := s[key].(float64); ok {
		return n
	}
	return or
}
