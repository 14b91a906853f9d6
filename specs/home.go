package specs

import (
	"fmt"
	"reflect"
	"strings"
)

// mapping is a place in a spec, and the language type that describes it.
type mapping struct {
	where string
	t     reflect.Type
}

// home asks whether a key that a mapping of type t does not have was meant for another: one within it, else those
// nearest to the top of a spec; "" = none has it.
func home(name string, t reflect.Type) string {
	for _, top := range []reflect.Type{t, reflect.TypeFor[specDoc]()} {
		for level := (mapping{t: top}).within(); len(level) > 0; {
			var at, next = []string(nil), []mapping(nil)
			for _, m := range level {
				if key := elsewhere(name, fieldsOf(m.t)); key != "" {
					at = append(at, fmt.Sprintf("%q of %s", key, m.where))
				}
				next = append(next, m.within()...)
			}
			if level = next; len(at) > 0 {
				return ": did you mean " + strings.Join(at, " or ") + "?"
			}
		}
	}
	return ""
}

// within returns the mappings that a mapping may have in it.
func (m mapping) within() (out []mapping) {
	for _, f := range fieldsOf(m.t) {
		in, where := m.t.Field(f.index).Type, f.key
		if in.Kind() == reflect.Slice {
			in, where = in.Elem(), "a "+strings.TrimSuffix(where, "s")
		}
		if in.Kind() == reflect.Pointer && len(fieldsOf(in.Elem())) > 0 {
			out = append(out, mapping{strings.TrimSuffix(where+" of "+m.where, " of "), in.Elem()})
		}
	}
	return out
}
