package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sluice/internal/strictjson"
)

// Bounds of a schema and of checking by it.
const (
	MaxBytes = 64 << 10

	maxRefs      = 10_000  // schemas that may be reached from one, so that a walk through it ends
	maxFilled    = 10_000  // values filled in from defaults
	maxWork      = 100_000 // schemas that one value at maxWorkDepth may be held against
	maxWorkDepth = 12
	maxFaults    = 8    // of the faults of one answer, in an error
	maxFault     = 400  // bytes of one of them
	maxText      = 1024 // bytes of what the library says
)

// Schema is a JSON Schema that answers can be held against.
type Schema struct{ of *jsonschema.Schema }

// schemaURL names the schema to the compiler. A relative $ref resolves against it and finds nothing.
const schemaURL = "schema:///.this"

var errRemote = errors.New("a $ref to another document: put the schema into $defs of this one")

// noLoader refuses every document but the schema itself. The drafts' own meta-schemas do not come through here.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errRemote }

// Compile reads a JSON Schema: an object of strict JSON, of at most MaxBytes, that refers to no
// other document, is not so tangled that checking would not end, and gives nothing that is named
// `destructive` a default: what an agent did not say about harm is not filled in.
func Compile(source []byte) (*Schema, error) {
	if _, err := strictjson.Check(source, MaxBytes); err != nil {
		return nil, fmt.Errorf("%w: fix the JSON", err)
	}
	doc, err := Decode(source)
	if err != nil {
		return nil, err
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("a schema is an object: write {} for one that takes everything")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %s: fix it", schemaFault(err))
	}
	all, err := reach(s)
	if err != nil {
		return nil, err
	}
	if err := checkDefaults(all); err != nil {
		return nil, err
	}
	if work(s, maxWorkDepth, map[workKey]int{}) > maxWork {
		return nil, errors.New("too complex: it checks one value against more than " +
			strconv.Itoa(maxWork) + " schemas: use fewer anyOf, allOf and $ref in one another")
	}
	return &Schema{s}, nil
}

func schemaFault(err error) string {
	if errors.Is(err, errRemote) {
		return errRemote.Error()
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Sprintf("%s (%s)", errRemote, line(load.URL, maxFault))
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			return strings.Join(faults(v), "; ")
		}
	}
	return line(strings.ReplaceAll(err.Error(), schemaURL, ""), maxText)
}

// Decode reads JSON that strictjson has passed. Numbers with many digits or an exponent become what a float64 holds of
// them: exact arithmetic on 1e-999999999 would take the machine.
func Decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return plainNumbers(v), nil
}

const maxExactDigits = 24

func plainNumbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k := range t {
			t[k] = plainNumbers(t[k])
		}
	case []any:
		for i := range t {
			t[i] = plainNumbers(t[i])
		}
	case json.Number:
		if len(t) > maxExactDigits || strings.ContainsAny(string(t), "eE") {
			f, err := t.Float64()
			if err != nil {
				return json.Number("0")
			}
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return v
}

// same are the schemas that hold for the very value that s holds for.
func same(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.ContentSchema},
		s.AllOf, s.AnyOf, s.OneOf)
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		out = append(out, s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if d, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			out = append(out, d)
		}
	}
	return slices.DeleteFunc(out, func(x *jsonschema.Schema) bool { return x == nil })
}

// below are the schemas that hold for what lies in the value that s holds for: those of one named property each, and
// those that may all hold for the same property or item.
func below(s *jsonschema.Schema) (named, all []*jsonschema.Schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		named = append(named, s.Properties[name])
	}
	all = slices.Concat([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems}, s.PrefixItems)
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	for _, one := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch t := one.(type) {
		case *jsonschema.Schema:
			all = append(all, t)
		case []*jsonschema.Schema:
			all = append(all, t...)
		}
	}
	return named, slices.DeleteFunc(all, func(x *jsonschema.Schema) bool { return x == nil })
}

// reach returns every schema that can come to be asked, s first.
func reach(s *jsonschema.Schema) ([]*jsonschema.Schema, error) {
	seen := map[*jsonschema.Schema]bool{s: true}
	all := []*jsonschema.Schema{s}
	for i := 0; i < len(all); i++ {
		if len(all) > maxRefs {
			return nil, fmt.Errorf("more than %d schemas in it: make it smaller", maxRefs)
		}
		named, others := below(all[i])
		for _, next := range slices.Concat(same(all[i]), named, others) {
			if !seen[next] {
				seen[next] = true
				all = append(all, next)
			}
		}
	}
	return all, nil
}

type workKey struct {
	s     *jsonschema.Schema
	depth int
}

// work is how many schemas one path of values, depth values deep, may be held against; it stops counting above the
// limit. A schema that holds for the same value again through itself never ends, and counts as above it.
func work(s *jsonschema.Schema, depth int, known map[workKey]int) int {
	key := workKey{s, depth}
	if n, ok := known[key]; ok {
		return n
	}
	known[key] = maxWork + 1 // while it is being asked
	n := 1
	for _, next := range same(s) {
		n = min(n+work(next, depth, known), maxWork+1)
	}
	if depth > 0 {
		named, all := below(s)
		worst := 0
		for _, next := range named {
			worst = max(worst, work(next, depth-1, known))
		}
		n = min(n+worst, maxWork+1)
		for _, next := range all {
			n = min(n+work(next, depth-1, known), maxWork+1)
		}
	}
	known[key] = n
	return n
}

// checkDefaults refuses every default that would speak about harm.
func checkDefaults(all []*jsonschema.Schema) error {
	const what = "%s has a default (at %s): what an agent does not say about harm may not be filled in: remove the default"
	for _, s := range all {
		if s.Default != nil && speaksOfHarm(*s.Default) {
			return fmt.Errorf(what, "`destructive`, in what holds it,", placeIn(s))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if !isHarm(name) {
				continue
			}
			found, err := reach(s.Properties[name])
			if err != nil {
				return err
			}
			for _, x := range found {
				if x.Default != nil {
					return fmt.Errorf(what, "`"+line(name, maxFault)+"`", placeIn(x))
				}
			}
		}
	}
	return nil
}

// placeIn is where in the document a schema stands.
func placeIn(s *jsonschema.Schema) string {
	_, at, _ := strings.Cut(s.Location, "#")
	return line(cmp.Or(at, "the top"), maxFault)
}

func isHarm(name string) bool { return strings.EqualFold(name, "destructive") }

func speaksOfHarm(v any) bool {
	switch t := v.(type) {
	case map[string]any:
		for k, sub := range t {
			if isHarm(k) || speaksOfHarm(sub) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(t, speaksOfHarm)
	}
	return false
}

// line is a text of the library's, or of who wrote a schema or an answer, on one line of at most max bytes.
func line(s string, max int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 4*max)], "")), " ")
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max-len("…")], "") + "…"
}
