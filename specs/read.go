package specs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sluice/internal/ids"
	"sluice/internal/text"

	"gopkg.in/yaml.v3"
)

// shape is a language value that reads itself from a node and has a JSON Schema.
type shape interface {
	read(r *reader, n *yaml.Node, what string)
	schema() object
}

// reader converts nodes to the language's types. It keeps every fault, and reads on.
type reader struct{ book }

// field is a key of a language type, as the tags of its Go field declare it (see language.go).
type field struct {
	key   string
	need  bool
	enum  []string // the permitted words; nil = any
	also  []string // what other tools call it
	doc   string
	index int // of the Go field
}

// fieldsOf returns the keys of a language type, in the order of their declaration.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if tag.Get("key") == "" {
			continue
		}
		f := field{key: tag.Get("key"), need: tag.Get("need") != "", doc: tag.Get("doc"), index: i}
		if e := tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		if a := tag.Get("also"); a != "" {
			f.also = strings.Split(a, ",")
		}
		out = append(out, f)
	}
	return out
}

// object reads a mapping into v, a language type. what names it in faults. A key that is missing is
// no fault if an unknown key seems to be a misspelling of it: one mistake, one fault.
func (r *reader) object(n *yaml.Node, v reflect.Value, what string) {
	at := n
	n = resolve(n)
	fields := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		r.at(at, "%s: expected a mapping (%s: …), found %s", what, fields[0].key, kindOf(n))
		return
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	p, meant := place{Node: at, Keys: map[string]*yaml.Node{}}, map[string]bool{}
	for _, kv := range r.pairs(n, what) {
		i := slices.Index(known, kv.name)
		if i < 0 {
			meant[r.unknown(kv, what, v.Type(), known)] = true
			continue
		}
		p.Keys[kv.name] = kv.value
		r.value(kv.value, v.Field(fields[i].index), fields[i], what)
	}
	v.Addr().Interface().(interface{ stand(place) }).stand(p) // every language type embeds a place
	for _, f := range fields {
		if f.need && p.Keys[f.key] == nil && !meant[f.key] {
			r.at(at, "%s: %q is missing", what, f.key)
		}
	}
}

// unknown reports an unknown key, and returns the known one that it seems to mean; "" = none.
func (r *reader) unknown(kv pair, what string, t reflect.Type, known []string) string {
	near, hint := cmp.Or(elsewhere(kv.name, fieldsOf(t)), text.Nearest(kv.name, known)), ""
	if near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	} else if r.searches++; r.searches <= maxNearest {
		hint = home(kv.name, t)
	}
	r.at(kv.key, "%s: unknown key %s%s", what, quote(kv.name), cmp.Or(hint, r.oneOf(kv.name, known)))
	return near
}

// strange reports a key that is none of the known ones.
func (r *reader) strange(kv pair, what string, known ...string) {
	r.at(kv.key, "%s: unknown key %s%s", what, quote(kv.name), r.oneOf(kv.name, known))
}

// elsewhere returns the key that is called name, here or by other tools; "" if there is none.
func elsewhere(name string, fields []field) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, f := range fields {
		for _, a := range append(f.also, f.key) {
			if name == a || name == strings.ReplaceAll(a, "_", "") { // dependsOn, depends-on
				return f.key
			}
		}
	}
	return ""
}

// value reads the value of a key into v, the Go field. A shape reads itself; else it is a mapping or
// a list of mappings.
func (r *reader) value(n *yaml.Node, v reflect.Value, f field, what string) {
	where := what + ": " + f.key
	if what == topName {
		where = f.key
	}
	if isNull(resolve(n)) {
		r.at(n, "%s is empty: give it a value or remove the key", where)
		return
	}
	if s, ok := v.Addr().Interface().(shape); ok {
		s.read(r, n, where)
		if t, ok := s.(*scalar); ok && f.enum != nil && t.node != nil && !slices.Contains(f.enum, t.value) {
			r.at(n, "%s: unknown %s %s%s", what, f.key, quote(t.value), r.oneOf(t.value, f.enum))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		made := reflect.New(v.Type().Elem())
		v.Set(made)
		if s, ok := made.Interface().(shape); ok {
			s.read(r, n, where)
			return
		}
		r.object(n, made.Elem(), where)
	case reflect.Slice:
		r.list(n, v, where)
	default:
		panic(fmt.Sprintf("specs: field %s of a kind the reader does not know", f.key))
	}
}

// list reads a list of mappings; messages name each by its id.
func (r *reader) list(n *yaml.Node, v reflect.Value, where string) {
	items, ok := r.items(n, where)
	if !ok {
		return
	}
	if len(items) == 0 {
		r.at(n, "%s: the list is empty", where)
	}
	for i, item := range items {
		made := reflect.New(v.Type().Elem().Elem())
		r.object(item, made.Elem(), nameOf(item, strings.TrimSuffix(where, "s"), i))
		if resolve(item).Kind == yaml.MappingNode {
			v.Set(reflect.Append(v, made))
		}
	}
}

// nameOf returns "step X-1", or "step 3 of the list" if it has no id.
func nameOf(n *yaml.Node, noun string, i int) string {
	if n = resolve(n); n.Kind == yaml.MappingNode {
		for k := 0; k+1 < len(n.Content); k += 2 {
			id := resolve(n.Content[k+1])
			if n.Content[k].Value == "id" && id.Kind == yaml.ScalarNode && ids.Fault(id.Value) == "" {
				return noun + " " + id.Value
			}
		}
	}
	return fmt.Sprintf("%s %d of the list", noun, i+1)
}

// items returns the nodes of a list. ok is false if the node is none, which it reports.
func (r *reader) items(n *yaml.Node, what string) (items []*yaml.Node, ok bool) {
	m := resolve(n)
	if m.Kind != yaml.SequenceNode {
		r.at(n, "%s: expected a list, found %s", what, kindOf(m))
		return nil, false
	}
	return m.Content, true
}

// pair is a key of a mapping, and its value.
type pair struct {
	name       string
	key, value *yaml.Node
}

// mapping returns the pairs of a mapping; a node that is none is reported. of describes one.
func (r *reader) mapping(n *yaml.Node, what, of string) []pair {
	m := resolve(n)
	if m.Kind != yaml.MappingNode {
		r.at(n, "%s: expected a mapping (%s), found %s", what, of, kindOf(m))
		return nil
	}
	return r.pairs(m, what)
}

// pairs returns a mapping's keys in file order; it reports duplicates and omits them. Keys that
// differ only in case count as duplicates: no reader should have to know which one is used.
func (r *reader) pairs(n *yaml.Node, what string) []pair {
	var out []pair
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := resolve(n.Content[i])
		if k.Kind != yaml.ScalarNode {
			r.at(n.Content[i], "%s: a key is a text, found %s", what, kindOf(k))
			continue
		}
		if k.ShortTag() == "!!merge" {
			r.at(n.Content[i], "%s: merge keys (<<) are not taken: write the keys out", what)
			continue
		}
		if first := seen[strings.ToLower(k.Value)]; first != nil {
			same := "is given twice"
			if resolve(first).Value != k.Value {
				same = fmt.Sprintf("differs from %s only in case", quote(resolve(first).Value))
			}
			r.at(n.Content[i], "%s: key %s %s: the first is on line %d", what, quote(k.Value), same, first.Line)
			continue
		}
		seen[strings.ToLower(k.Value)] = n.Content[i]
		out = append(out, pair{k.Value, n.Content[i], n.Content[i+1]})
	}
	return out
}

// scalar returns the text of a node; it is not set if that is a list, a mapping or null. expected describes it in
// faults.
func (r *reader) scalar(n *yaml.Node, what, expected string) scalar {
	switch m := resolve(n); {
	case m.Kind != yaml.ScalarNode || isNull(m):
		r.at(n, "%s: expected %s, found %s", what, expected, kindOf(m))
	case m.Style&yaml.TaggedStyle != 0:
		r.at(n, "%s: tags (%s) are not taken", what, m.Tag)
	case strings.ContainsRune(m.Value, 0):
		r.at(n, "%s: holds a NUL character", what)
	default:
		return scalar{m.Value, n}
	}
	return scalar{}
}
