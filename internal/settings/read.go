package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/specs"
)

// Limits of a settings file.
const (
	maxSettingsBytes = 128 << 10
	maxSettingsNodes = 10_000
	maxSettingsDepth = 20
)

// kindOf returns the type of a key's value; an error names the nearest key. Any name of an agent or
// a role matches.
func kindOf(key string) (reflect.Type, error) {
	t := reflect.TypeFor[Settings]()
	done := ""
	for part := range strings.SplitSeq(key, sep) {
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			var known []string
			var next reflect.Type
			for field := range t.Fields() {
				name := field.Tag.Get("koanf")
				if !field.IsExported() {
					continue
				}
				if known = append(known, done+name); name == part {
					next = field.Type
				}
			}
			if next == nil {
				return nil, fmt.Errorf("%s: no such key%s", text.Line(done+part), text.DidYouMean(done+part, known))
			}
			t = next
		default:
			return nil, fmt.Errorf("%s: it has no keys below it", text.Line(strings.TrimSuffix(done, ".")))
		}
		done += part + "."
	}
	return t, nil
}

// Known returns an error that names the nearest key if there is no key of that name.
func Known(dotted string) error {
	_, err := kindOf(strings.ReplaceAll(dotted, ".", sep))
	return err
}

// fixedKeys returns the keys with fixed names: all but those of roles and agents.
func fixedKeys() (out []string) {
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for field := range t.Fields() {
			if !field.IsExported() {
				continue
			}
			key, ft := prefix+field.Tag.Get("koanf"), field.Type
			switch ft.Kind() {
			case reflect.Struct:
				walk(ft, key+sep)
			case reflect.Map:
			default:
				out = append(out, key)
			}
		}
	}
	walk(reflect.TypeFor[Settings](), "")
	return out
}

// fileLayer reads a settings file and returns all its faults. A missing file is no layer.
func fileLayer(file string, project bool) (l layer, there bool, faults []error) {
	l = layer{name: file, values: map[string]any{}, lines: map[string]origin{}, project: project}
	data, err := atomicfile.Read(file, maxSettingsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err != nil {
		return l, true, []error{fmt.Errorf("%s: %w", file, err)}
	}
	doc, rest, err := specs.Decode(data)
	r := &settingsReader{layer: &l, file: layout.ShortPath(file)}
	switch {
	case err != nil:
		line, why := specs.YAMLFault(data, err)
		return l, true, []error{fault.At(r.file, line, 1, "not YAML: %s", why)}
	case doc == nil || len(doc.Content) == 0:
		return l, true, nil
	case rest != nil:
		return l, true, []error{fault.At(r.file, rest.Line, 1, "more than one document: want one")}
	}
	r.mapping(doc.Content[0], "", 0)
	l.former()
	return l, true, r.faults
}

// former reads an agent entry from before the agent was built in, with its prompt as an argument:
// what `init` wrote means the built-in agent, and another command stays a text agent.
func (l *layer) former() {
	agents, _ := l.values["agents"].(map[string]any)
	for name, v := range agents {
		a, _ := v.(map[string]any)
		was := program.Former(name)
		switch {
		case was == nil || a["format"] != nil || a["command"] == nil || a["prompt_via"] == nil ||
			a["prompt_via"] == ViaStdin:
		case fmt.Sprint(a["command"]) == fmt.Sprint(was) && a["prompt_via"] == ViaArg:
			delete(a, "command")
			delete(a, "prompt_via")
		default:
			a["format"] = FormatText
		}
	}
}

// settingsReader converts nodes to values and collects faults.
type settingsReader struct {
	*layer
	file   string
	nodes  int
	faults []error
}

func (r *settingsReader) at(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fault.At(r.file, n.Line, n.Column, format, args...))
}

func (r *settingsReader) mapping(n *yaml.Node, prefix string, depth int) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode || depth > maxSettingsDepth {
		r.at(n, "%s: want keys and values", text.Line(Dotted(strings.TrimSuffix(prefix, sep))))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if r.nodes++; r.nodes > maxSettingsNodes {
			r.faults = []error{fault.At(r.file, k.Line, k.Column, "more than %d values: leave some out", maxSettingsNodes)}
			return
		}
		if k.Kind != yaml.ScalarNode || k.Value == "" || strings.Contains(k.Value, sep) {
			r.at(k, "%s: no name of a key", text.Line(k.Value))
			continue
		}
		if seen[k.Value] {
			r.at(k, "%s: the key appears twice", text.Line(k.Value))
			continue
		}
		seen[k.Value] = true
		r.value(k, v, prefix+k.Value, depth)
	}
}

// value reads one key of a mapping.
func (r *settingsReader) value(k, v *yaml.Node, key string, depth int) {
	kind, err := kindOf(key)
	if err != nil {
		r.at(k, "%s", err)
		return
	}
	if keys := kind.Kind() == reflect.Struct || kind.Kind() == reflect.Map; keys &&
		(v.Kind == yaml.MappingNode || !r.yoursOnly(key)) {
		r.mapping(v, key+sep, depth+1)
		return
	}
	if r.yoursOnly(key) {
		r.at(k, "%s is yours alone to set, in your own settings file: agents can write this one", Dotted(key))
		return
	}
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
		return
	}
	val, err := nodeValue(v, kind, key)
	if err != nil {
		r.at(v, "%s: %s", Dotted(key), err)
		return
	}
	put(r.values, key, val)
	r.lines[key] = origin{r.file, k.Line}
}

// yoursOnly reports whether the layer is the project's and may not set the key.
func (r *settingsReader) yoursOnly(key string) bool {
	k, ok := KeyOf(strings.Split(key, sep))
	return r.project && ok && k.Class == YoursOnly
}

// readValue reads a value from text: a list is YAML, or one word.
func readValue(value string, kind reflect.Type) (any, error) {
	if kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map || kind.Kind() == reflect.Struct {
		if len(value) > maxSettingsBytes {
			return nil, errors.New("too long")
		}
		doc, _, err := specs.Decode([]byte(value))
		if err != nil || doc == nil || len(doc.Content) == 0 {
			return nil, errors.New("want a list, as in [a, b]")
		}
		return nodeValue(doc.Content[0], kind, "")
	}
	return scalar(value, kind)
}

// nodeValue reads a leaf. A list may be one word, except a command: it would look as if a shell
// split it.
func nodeValue(n *yaml.Node, kind reflect.Type, key string) (any, error) {
	if kind.Kind() == reflect.Slice {
		if n.Kind == yaml.ScalarNode && !strings.HasSuffix(key, sep+"command") {
			return []string{n.Value}, nil
		}
		if n.Kind != yaml.SequenceNode {
			return nil, fmt.Errorf("want %s", wordFor(kind))
		}
		list := []string{}
		for _, e := range n.Content {
			if e.Kind != yaml.ScalarNode {
				return nil, errors.New("want a list of words")
			}
			list = append(list, e.Value)
		}
		return list, nil
	}
	if n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("want %s", wordFor(kind))
	}
	return scalar(n.Value, kind)
}

func scalar(value string, kind reflect.Type) (any, error) {
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	read, ok := any(value), true
	switch {
	case kind == reflect.TypeFor[engine.Duration]():
		_, err := time.ParseDuration(value)
		ok = err == nil || value == "0"
	case kind.Kind() == reflect.String:
	case kind.Kind() == reflect.Bool:
		read, ok = value == "true", value == "true" || value == "false"
	case kind.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		read, ok = f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	case kind.Kind() == reflect.Int, kind.Kind() == reflect.Int64:
		n, err := strconv.ParseInt(strings.ReplaceAll(value, "_", ""), 10, 64)
		read, ok = n, err == nil
	default:
		return nil, errors.New("cannot be set here")
	}
	if !ok {
		return nil, fmt.Errorf("%q: want %s", text.Line(value), wordFor(kind))
	}
	return read, nil
}

func wordFor(kind reflect.Type) string {
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case kind == reflect.TypeFor[engine.Duration]():
		return "a time such as 30s or 2h"
	case kind.Kind() == reflect.Bool:
		return "true or false"
	case kind.Kind() == reflect.Int, kind.Kind() == reflect.Int64:
		return "a whole number"
	case kind.Kind() == reflect.Float64:
		return "a number"
	case kind.Kind() == reflect.Slice:
		return "a list, as in [a, b]"
	}
	return "a word"
}
