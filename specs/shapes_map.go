package specs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/ids"
)

// named is one entry of an ordered mapping.
type named struct {
	name string
	key  *yaml.Node
	text scalar
}

func (r *reader) entries(n *yaml.Node, what, of string) (out []named) {
	for _, kv := range r.mapping(n, what, of) {
		var t scalar
		if t.read(r, kv.value, what+": "+quote(kv.name)); t.set() {
			out = append(out, named{kv.name, kv.key, t})
		}
	}
	return out
}

type envDoc struct{ items []named }

func (e *envDoc) read(r *reader, n *yaml.Node, what string) {
	items := r.entries(n, what, "NAME: value")
	for _, it := range items {
		switch {
		case !identifier(it.name):
			r.at(it.key, "%s: %s is not a variable name: letters, digits and _ only", what, quote(it.name))
		case strings.HasPrefix(strings.ToUpper(it.name), "SLUICE_"):
			r.at(it.key, "%s: %s: SLUICE_* are the engine's own: take another name", what, it.name)
		default:
			e.items = append(e.items, it)
		}
	}
}

// tasksDoc is `for_each: tasks`: a path, or one entry path: expression.
type tasksDoc struct{ outputDoc }

func (d *tasksDoc) read(r *reader, n *yaml.Node, what string) {
	m := resolve(n)
	if m.Kind != yaml.MappingNode {
		d.path = r.scalar(n, what, "a path, or {path: expression}")
		return
	}
	if entries := r.entries(n, what, "path: expression"); len(m.Content) != 2 {
		r.at(n, "%s: want one entry, {path: expression}: a step has one list", what)
	} else if len(entries) == 1 {
		d.path, d.value = scalar{entries[0].name, entries[0].key}, entries[0].text
	}
}

// givenDoc is `vars:` beside `workflow`.
type givenDoc struct{ items []named }

func (d *givenDoc) read(r *reader, n *yaml.Node, what string) {
	d.items = r.entries(n, what, "name: value")
}

// identifier reports whether expressions and shells accept the name.
func identifier(s string) bool {
	return s != "" && len(s) <= ids.Max && strings.Trim(s, nameBytes) == "" && (s[0] < '0' || s[0] > '9')
}

type routesDoc struct{ items []named }

func (d *routesDoc) read(r *reader, n *yaml.Node, what string) {
	d.items = r.entries(n, what, "outcome: where to")
}

type rolesDoc struct{ items []roleLimits }

type roleLimits struct {
	name string
	key  *yaml.Node
	doc  roleDoc
}

func (d *rolesDoc) read(r *reader, n *yaml.Node, what string) {
	for _, kv := range r.mapping(n, what, "role: {max_tokens: …}") {
		it := roleLimits{name: kv.name, key: kv.key}
		if bad := ids.Fault(kv.name); bad != "" {
			r.at(kv.key, "%s: %s %s", what, quote(kv.name), bad)
			continue
		}
		r.object(kv.value, reflect.ValueOf(&it.doc).Elem(), what+": "+kv.name)
		d.items = append(d.items, it)
	}
}

// verdictDoc is `verdict:`: rules, or one expression for the name.
type verdictDoc struct {
	rules []named
	name  exprDoc
}

func (d *verdictDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind == yaml.MappingNode {
		d.rules = r.entries(n, what, "outcome: condition")
		if len(resolve(n).Content) == 0 {
			r.at(n, "%s: no outcome is given", what)
		}
		return
	}
	d.name.read(r, n, what)
}

// outputDoc is one of `outputs:`.
type outputDoc struct {
	path  scalar
	value scalar // an expression for its content; unset = the step creates it
}

type outputsDoc struct{ items []outputDoc }

func (d *outputsDoc) read(r *reader, n *yaml.Node, what string) {
	items, _ := r.items(n, what)
	for _, item := range items {
		if resolve(item).Kind != yaml.MappingNode {
			var t scalar
			if t.read(r, item, what); t.set() {
				d.items = append(d.items, outputDoc{path: t})
			}
			continue
		}
		entries := r.entries(item, what, "path: expression")
		if len(resolve(item).Content) == 0 {
			r.at(item, "%s: an entry is empty", what)
		}
		for _, e := range entries {
			d.items = append(d.items, outputDoc{scalar{e.name, e.key}, e.text})
		}
	}
}

// criterionDoc is one of `success_criterion:`.
type criterionDoc struct {
	sentence scalar
	command  commandDoc
	file     scalar
	nonEmpty bool
	folder   bool
}

type criteriaDoc struct{ items []criterionDoc }

func (d *criteriaDoc) read(r *reader, n *yaml.Node, what string) {
	if resolve(n).Kind != yaml.SequenceNode {
		d.one(r, n, what)
		return
	}
	items, _ := r.items(n, what)
	if len(items) == 0 {
		r.at(n, "%s: the list is empty", what)
	}
	for _, item := range items {
		d.one(r, item, what)
	}
}

func (d *criteriaDoc) one(r *reader, n *yaml.Node, what string) {
	m := resolve(n)
	if m.Kind != yaml.MappingNode {
		switch t := r.scalar(n, what, "a sentence, {run: …}, {file: …} or a list of them"); {
		case !t.set():
		case strings.TrimSpace(t.value) == "":
			r.at(n, "%s is empty", what)
		default:
			d.items = append(d.items, criterionDoc{sentence: t})
		}
		return
	}
	var c criterionDoc
	var nonEmpty *yaml.Node
	for _, kv := range r.pairs(m, what) {
		switch kv.name {
		case "run":
			c.command.read(r, kv.value, what+": run")
		case "file":
			c.file.read(r, kv.value, what+": file")
		case "non_empty":
			nonEmpty = kv.key
			c.nonEmpty, _ = r.boolean(kv.value, what+": non_empty")
		case "folder":
			c.folder, _ = r.boolean(kv.value, what+": folder")
		default:
			r.strange(kv, what, "run", "file", "non_empty", "folder")
		}
	}
	keys := keysOf(m)
	switch {
	case slices.Contains(keys, "run") == slices.Contains(keys, "file"):
		r.at(n, "%s: exactly one of run and file is needed", what)
	case nonEmpty != nil && !slices.Contains(keys, "file"):
		r.at(nonEmpty, "%s: non_empty goes with file", what)
	case c.command.set() || c.file.set():
		d.items = append(d.items, c)
	}
}

func keysOf(m *yaml.Node) (keys []string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		keys = append(keys, m.Content[i].Value)
	}
	return keys
}

func (r *reader) boolean(n *yaml.Node, what string) (v, ok bool) {
	m := resolve(n)
	if m.Kind != yaml.ScalarNode || m.ShortTag() != "!!bool" {
		r.at(n, "%s: expected true or false, found %s", what, kindAndValue(m))
		return false, false
	}
	return strings.EqualFold(m.Value, "true"), true
}

// varDoc is one of `vars:`.
type varDoc struct {
	engine.Var // its values are string, float64 or bool
	key        *yaml.Node
}

type varsDoc struct{ items []varDoc }

func (d *varsDoc) read(r *reader, n *yaml.Node, what string) {
	for _, kv := range r.mapping(n, what, "name: default") {
		where := what + ": " + kv.name
		if !identifier(kv.name) {
			r.at(kv.key, "%s: %s is not a var name: letters, digits and _ only, so that expressions and $SLUICE_VAR_… "+
				"can name it", what, quote(kv.name))
			continue
		}
		v := varDoc{Var: engine.Var{Name: kv.name}, key: kv.key}
		ok := false
		if resolve(kv.value).Kind == yaml.MappingNode {
			ok = v.long(r, kv.value, where)
		} else {
			v.Default, ok = r.plain(kv.value, where)
		}
		if ok {
			d.items = append(d.items, v)
		}
	}
}

// long reads {required: true, description: …} or {default: …, one_of: […], description: …}.
func (v *varDoc) long(r *reader, n *yaml.Node, what string) (ok bool) {
	ok = true
	keys := keysOf(resolve(n))
	for _, kv := range r.pairs(resolve(n), what) {
		good := true
		switch kv.name {
		case "required":
			v.Required, good = r.boolean(kv.value, what+": required")
		case "default":
			v.Default, good = r.plain(kv.value, what+": default")
		case "one_of":
			v.OneOf, good = r.choices(kv.value, what+": one_of")
		case "description":
			var t scalar
			t.read(r, kv.value, what+": description")
			v.Description = t.value
		default:
			r.strange(kv, what, "required", "default", "one_of", "description")
			good = false
		}
		ok = ok && good
	}
	if ok && v.Required == slices.Contains(keys, "default") {
		r.at(n, "%s: exactly one of required: true and default is needed", what)
		return false
	}
	if ok && v.Default != nil && v.OneOf != nil && !slices.Contains(v.OneOf, v.Default) {
		r.at(n, "%s: the default is none of one_of: %s", what, choiceWords(v.OneOf))
		return false
	}
	return ok
}

// choices reads the values that a var may have, all of the same type.
func (r *reader) choices(n *yaml.Node, what string) (out []any, ok bool) {
	items, ok := r.items(n, what)
	if ok && len(items) == 0 {
		r.at(n, "%s: the list is empty", what)
		return nil, false
	}
	for _, item := range items {
		v, good := r.plain(item, what)
		if good && len(out) > 0 && reflect.TypeOf(v) != reflect.TypeOf(out[0]) {
			r.at(item, "%s: want values of one kind", what)
			good = false
		}
		out, ok = append(out, v), ok && good
	}
	return out, ok
}

func choiceWords(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}

// plain reads a scalar as a typed value: a text, a number, true or false.
func (r *reader) plain(n *yaml.Node, what string) (any, bool) {
	t := r.scalar(n, what, "a text, a number, true or false")
	if !t.set() {
		return nil, false
	}
	v := t.value
	switch resolve(n).ShortTag() {
	case "!!bool":
		return strings.EqualFold(v, "true"), true
	case "!!int", "!!float":
		if leadingZero(v) {
			r.at(n, "%s: %s has a leading zero: write %s, or \"%s\" for a text", what, quote(v), trimZeros(v), v)
			return nil, false
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			r.at(n, "%s: %s is not a plain number: put a text in quotes", what, quote(v))
			return nil, false
		}
		return f, true
	}
	return v, true
}
