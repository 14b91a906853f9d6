package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sluice/internal/strictjson"
)

// filler puts defaults where values are missing.
type filler struct {
	never []string // top-level keys that nothing is filled in for
	count int
}

var errFill = fmt.Errorf("more than %d values to fill in from the schema's defaults", maxFilled)

// fill puts the defaults of s into v, which s holds for. What is in anyOf, oneOf, if and not is not filled in: it may
// not be meant.
func (f *filler) fill(s *jsonschema.Schema, v any, depth int, top bool) error {
	if depth > strictjson.MaxDepth {
		return nil
	}
	for _, next := range slices.Concat([]*jsonschema.Schema{s.Ref}, s.AllOf) {
		if next != nil {
			if err := f.fill(next, v, depth+1, top); err != nil {
				return err
			}
		}
	}
	switch t := v.(type) {
	case map[string]any:
		return f.fillObject(s, t, depth, top)
	case []any:
		for i, item := range t {
			for _, sub := range itemSchemas(s, i) {
				if err := f.fill(sub, item, depth+1, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (f *filler) fillObject(s *jsonschema.Schema, v map[string]any, depth int, top bool) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		sub := s.Properties[name]
		_, there := v[name]
		if !there && !isHarm(name) && !(top && slices.Contains(f.never, name)) {
			if d := defaultOf(sub, 0); d != nil {
				if f.count++; f.count > maxFilled {
					return errFill
				}
				v[name] = deepCopy(*d)
				there = true
			}
		}
		if there {
			if err := f.fill(sub, v[name], depth+1, false); err != nil {
				return err
			}
		}
	}
	if extra, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if s.Properties[name] == nil {
				if err := f.fill(extra, v[name], depth+1, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// defaultOf is the default of s, or of what it refers to.
func defaultOf(s *jsonschema.Schema, depth int) *any {
	if s.Default != nil || depth > strictjson.MaxDepth {
		return s.Default
	}
	for _, next := range slices.Concat([]*jsonschema.Schema{s.Ref}, s.AllOf) {
		if next != nil {
			if d := defaultOf(next, depth+1); d != nil {
				return d
			}
		}
	}
	return nil
}

// itemSchemas are the schemas that hold for item i of a list.
func itemSchemas(s *jsonschema.Schema, i int) []*jsonschema.Schema {
	prefix := s.PrefixItems
	rest := s.Items2020
	switch t := s.Items.(type) {
	case *jsonschema.Schema:
		rest = t
	case []*jsonschema.Schema:
		prefix = t
		if extra, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			rest = extra
		}
	}
	switch {
	case i < len(prefix):
		return prefix[i : i+1]
	case rest != nil:
		return []*jsonschema.Schema{rest}
	}
	return nil
}

func deepCopy(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, sub := range t {
			out[k] = deepCopy(sub)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, sub := range t {
			out[i] = deepCopy(sub)
		}
		return out
	}
	return v
}

// Conform fills v, which Decode gave, in from the schema's defaults and holds it against the
// schema. Nothing is filled in for the top-level keys in never.
func (s *Schema) Conform(v any, never ...string) error {
	f := &filler{never: never}
	if err := f.fill(s.of, v, 0, true); err != nil {
		return err
	}
	if err := s.of.Validate(v); err != nil {
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) {
			return fmt.Errorf("it does not fit the schema: %s", line(err.Error(), maxText))
		}
		return fmt.Errorf("it does not fit the schema: %s", strings.Join(faults(invalid), "; "))
	}
	return nil
}

// faults names what does not fit, each with its place in the value.
func faults(err *jsonschema.ValidationError) []string {
	var out []string
	seen := map[string]bool{}
	more := 0
	leaves(err.DetailedOutput(), func(u *jsonschema.OutputUnit) {
		at := strings.ReplaceAll(strings.TrimPrefix(u.InstanceLocation, "/"), "/", ".")
		text := line(cmp.Or(at, "(top)")+": "+u.Error.String(), maxFault)
		switch {
		case seen[text]:
		case len(out) == maxFaults:
			more++
		default:
			seen[text] = true
			out = append(out, text)
		}
	})
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if len(out) == 0 {
		out = append(out, line(err.Error(), maxText))
	}
	return out
}

// leaves gives the faults that have no closer ones below them.
func leaves(u *jsonschema.OutputUnit, each func(*jsonschema.OutputUnit)) {
	if len(u.Errors) == 0 && u.Error != nil {
		each(u)
	}
	for i := range u.Errors {
		leaves(&u.Errors[i], each)
	}
}
