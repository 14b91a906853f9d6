package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Property is one of the properties of an answer, as a person is asked for it.
type Property struct {
	Name, Title, About string
	Required           bool
	Default            *any
	Choices            []any // of an enum
	of                 *jsonschema.Schema
}

// Properties are those that the schema names for its top, the required ones first, in the order in
// which it requires them.
func (s *Schema) Properties() []Property {
	var required []string
	named := map[string]*jsonschema.Schema{}
	for _, x := range chain(s.of, 0) {
		required = append(required, x.Required...)
		for name, of := range x.Properties {
			if named[name] == nil {
				named[name] = of
			}
		}
	}
	var out []Property
	seen := map[string]bool{}
	for _, name := range slices.Concat(required, slices.Sorted(maps.Keys(named))) {
		of := named[name]
		if seen[name] || of == nil {
			continue
		}
		seen[name] = true
		p := Property{Name: name, Required: slices.Contains(required, name), of: of}
		if !isHarm(name) {
			p.Default = defaultOf(of, 0)
		}
		for _, x := range chain(of, 0) {
			p.Title, p.About = cmp.Or(p.Title, x.Title), cmp.Or(p.About, x.Description)
			if x.Enum != nil && p.Choices == nil {
				p.Choices = x.Enum.Values
			}
		}
		out = append(out, p)
	}
	return out
}

// Options are all values that the property may have, if there are few; nil = any number.
func (p Property) Options() []any {
	if p.Choices == nil && slices.Equal(p.types(), []string{"boolean"}) {
		return []any{true, false}
	}
	return p.Choices
}

// chain is a schema with those that hold for the same value wherever it does.
func chain(s *jsonschema.Schema, depth int) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s}
	if depth > strictjson.MaxDepth {
		return out
	}
	for _, next := range slices.Concat([]*jsonschema.Schema{s.Ref}, s.AllOf) {
		if next != nil {
			out = append(out, chain(next, depth+1)...)
		}
	}
	return out
}

// types are the JSON types that the property may have; none = any.
func (p Property) types() []string {
	for _, x := range chain(p.of, 0) {
		if x.Types != nil {
			return x.Types.ToStrings()
		}
	}
	return nil
}

// Want returns what the property may be: "an integer from 1 to 9".
func (p Property) Want() string {
	if p.Choices != nil {
		var all []string
		for _, c := range p.Choices {
			all = append(all, Shown(c))
		}
		return line("one of "+strings.Join(all, ", "), maxFault)
	}
	words := map[string]string{"string": "text", "integer": "an integer", "number": "a number",
		"boolean": "true or false", "array": "a list, in JSON", "object": "an object, in JSON", "null": "null"}
	var kinds []string
	for _, t := range p.types() {
		kinds = append(kinds, words[t])
	}
	out := cmp.Or(strings.Join(kinds, " or "), "any value")
	for _, x := range chain(p.of, 0) {
		switch low, high := x.Minimum, x.Maximum; {
		case low != nil && high != nil:
			out += fmt.Sprintf(" from %s to %s", low.RatString(), high.RatString())
		case low != nil:
			out += ", at least " + low.RatString()
		case high != nil:
			out += ", at most " + high.RatString()
		}
		switch {
		case x.MinLength == nil || *x.MinLength <= 0:
		case *x.MinLength == 1:
			out += ", not empty"
		default:
			out += fmt.Sprintf(", at least %d characters", *x.MinLength)
		}
		if x.Pattern != nil {
			out += ", matching " + x.Pattern.String()
		}
	}
	return line(out, maxFault)
}

// Read reads a value of the property as a person writes it: text as it is, all else as JSON.
func (p Property) Read(text string) (any, error) {
	bad := fmt.Errorf("%s: want %s, found %s", line(p.Name, maxFault), p.Want(), line(strconv.Quote(text), maxFault))
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, bad
	}
	for _, c := range p.Choices {
		if Shown(c) == text {
			return c, nil
		}
	}
	types := p.types()
	v, err := fromJSON(text)
	switch {
	case slices.Contains(types, "string") && (err != nil || v != nil || !slices.Contains(types, "null")):
		v = text
	case err != nil && types == nil:
		v = text
	case err != nil:
		return nil, bad
	}
	if p.of.Validate(v) != nil {
		return nil, bad
	}
	return v, nil
}

func fromJSON(text string) (any, error) {
	if _, err := strictjson.Check([]byte(text), MaxBytes); err != nil {
		return nil, err
	}
	return Decode([]byte(text))
}

// Shown is a value as a person writes it.
func Shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// Given makes an answer of what a person wrote: NAME=VALUE for each property, or all of it as one JSON object.
func (s *Schema) Given(args []string) (map[string]any, error) {
	out := map[string]any{}
	all := s.Properties()
	for _, arg := range args {
		if strings.HasPrefix(strings.TrimSpace(arg), "{") {
			if len(args) > 1 {
				return nil, errors.New("an answer as JSON is complete: give nothing beside it")
			}
			v, err := fromJSON(arg)
			if err != nil {
				return nil, fmt.Errorf("the answer: %w", err)
			}
			return v.(map[string]any), nil
		}
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%s: want NAME=VALUE, or the whole answer as a JSON object",
				line(strconv.Quote(arg), maxFault))
		}
		i := slices.IndexFunc(all, func(p Property) bool { return p.Name == name })
		if i < 0 {
			return nil, errors.New(unknown(name, all))
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		v, err := all[i].Read(text)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// unknown says that no property has the name, and which was likely meant.
func unknown(name string, all []Property) string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	says := "it asks for " + strings.Join(names, ", ")
	if near := text.Nearest(name, names); near != "" {
		says = "did you mean " + near + "?"
	}
	return line(fmt.Sprintf("the answer has no %s: %s", line(strconv.Quote(name), maxFault), says), maxText)
}

// Person completes a person's answer, JSON or nothing, from the schema's defaults and holds it
// against the schema. It gives the answer with its keys in order; the error says what is missing
// and what is wrong.
func (s *Schema) Person(data []byte) (json.RawMessage, error) {
	if len(data) == 0 {
		data = []byte("{}")
	}
	if err := strictjson.Object(data, MaxBytes); err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	v, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	given := v.(map[string]any)
	if err := s.Conform(given); err != nil {
		return nil, s.faultsOf(given, err)
	}
	return Encode(given, MaxBytes)
}

// faultsOf says in a person's words what is missing of an answer, or wrong with it; err is what the schema says.
func (s *Schema) faultsOf(given map[string]any, err error) error {
	all := s.Properties()
	var lacks, wrong []string
	for _, p := range all {
		switch v, there := given[p.Name]; {
		case !there && p.Required:
			lacks = append(lacks, p.Name+" ("+p.says()+")")
		case there && p.of.Validate(v) != nil:
			wrong = append(wrong, fmt.Sprintf("%s: want %s, found %s", p.Name, p.Want(), line(Shown(v), maxFault)))
		}
	}
	closed := slices.ContainsFunc(chain(s.of, 0),
		func(x *jsonschema.Schema) bool { return x.AdditionalProperties == false })
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if closed && !slices.ContainsFunc(all, func(p Property) bool { return p.Name == name }) {
			wrong = append(wrong, unknown(name, all))
		}
	}
	var out []string
	if len(lacks) > 0 {
		out = append(out, "the answer lacks "+strings.Join(lacks, ", "))
	}
	if out = append(out, wrong...); len(out) == 0 {
		return err
	}
	return errors.New(line(strings.Join(out, "; "), maxText))
}

// says is what the property is, and what it may be.
func (p Property) says() string {
	if what := cmp.Or(p.Title, p.About); what != "" {
		return line(what, maxFault) + ": " + p.Want()
	}
	return p.Want()
}

// Example is how a person gives the properties that have to be given, as arguments of a command.
func (s *Schema) Example() string {
	var out []string
	add := func(p Property) {
		value := "…"
		switch types := p.types(); {
		case len(p.Choices) > 0:
			value = Shown(p.Choices[0])
		case slices.Contains(types, "string"), types == nil:
		case slices.Contains(types, "integer"), slices.Contains(types, "number"):
			value = "1"
			for _, x := range chain(p.of, 0) {
				if x.Minimum != nil && x.Minimum.IsInt() {
					value = x.Minimum.RatString()
				}
			}
		case slices.Contains(types, "boolean"):
			value = "true"
		}
		arg := p.Name + "=" + value
		if strings.ContainsAny(arg, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		out = append(out, "-a "+arg)
	}
	all := s.Properties()
	for _, p := range all {
		if p.Required && p.Default == nil {
			add(p)
		}
	}
	if len(out) == 0 && len(all) > 0 {
		add(all[0])
	}
	return line(strings.Join(out, " "), maxText)
}

// Encode writes JSON with its keys in order and nothing escaped that need not be, in at most most bytes.
func Encode(v any, most int) (json.RawMessage, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	if out.Len() > most {
		return nil, fmt.Errorf("the answer: more than %d bytes with its defaults: give a shorter one", most)
	}
	return json.RawMessage(strings.TrimSpace(out.String())), nil
}
