package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Settings come in layers, each over the one before: built-in, the person's file, the project's
// file, SLUICE_CONFIG_<KEY>, --set. An unknown key in any layer is an error that names the place
// and the nearest key.
//
// The project's file is in the repo, where colleagues and agents write: Keys lists what it may set.
// Whoever starts a run trusts the repo's agents and commands to run in its attempts, sandboxed and
// recorded. Only that person decides the sandbox, the secrets that agents get, and the notices.

// sep separates the parts of a key inside this package: names of roles may contain dots.
const sep = "/"

// EnvPrefix begins the names of environment variables that are settings.
const EnvPrefix = "SLUICE_CONFIG_"

// layer is one source of settings.
type layer struct {
	name   string            // built-in, or the source: a file, a variable, --set
	values map[string]any    // nested
	lines  map[string]origin // key -> exact place

	project bool // it may only tighten the others
}

// origin is where a value was set: a line of a file, a variable, or --set.
type origin struct {
	name string
	line int // 0 = none
}

func (o origin) String() string {
	if o.line == 0 {
		return o.name
	}
	return fmt.Sprintf("%s:%d", o.name, o.line)
}

// fault returns an error about the value that was set there.
func (o origin) fault(advice, format string, args ...any) error {
	f := fault.New(advice, format, args...)
	if o.line == 0 {
		f.Cause = o.name + ": " + f.Cause
		return f
	}
	f.File, f.Line = o.name, o.line
	return f
}

// Layered are settings merged from all layers.
type Layered struct {
	Settings
	Files []string // the files read, in order

	k    *koanf.Koanf
	from map[string]origin // key -> origin of its value
}

// Read reads all layers: own is the person's file, root the repo ("" = none), environ the
// environment, set the --set arguments.
func Read(own, root string, environ, set []string) (*Layered, error) {
	layers := []layer{builtInLayer()}
	files := []string{own}
	if root != "" {
		files = append(files, ProjectFile(root))
	}
	var faults []error
	var read []string
	for i, f := range files {
		l, there, errs := fileLayer(f, i == 1)
		faults = append(faults, errs...)
		if there {
			layers, read = append(layers, l), append(read, f)
		}
	}
	env, errs := envLayer(environ)
	layers, faults = append(layers, env), append(faults, errs...)
	flags, errs := setLayer(set)
	layers = append(layers, flags)
	if len(faults) == 0 && len(errs) > 0 {
		return nil, settingsFault(errs, fault.ExitUsage)
	}
	if faults = append(faults, errs...); len(faults) > 0 {
		return nil, settingsFault(faults, fault.ExitFailed)
	}
	return merge(layers, read)
}

// ProjectFile returns the settings file of a repo.
func ProjectFile(root string) string { return filepath.Join(root, layout.WorkflowDir, "config.yaml") }

// Faults returns the faults in an error of the settings, or the error alone if it is another.
func Faults(err error) []error {
	var f *fault.Error
	if errors.As(err, &f) && f.Err != nil {
		if many, ok := f.Err.(interface{ Unwrap() []error }); ok {
			return many.Unwrap()
		}
	}
	return []error{err}
}

// settingsFault combines many errors: the first is the cause, and Faults returns all.
func settingsFault(faults []error, code int) error {
	return &fault.Error{Cause: faults[0].Error() + text.More(len(faults)-1, "fault"),
		Advice: "`sluice config --help` names the keys; `sluice doctor` reports every fault", Code: code,
		Err: errors.Join(faults...)}
}

// merge merges the layers and checks the result.
func merge(layers []layer, files []string) (*Layered, error) {
	s, err := overlay(layers)
	if err != nil {
		return nil, err
	}
	s.Files = files
	faults, err := s.loosened(layers)
	if err != nil {
		return nil, err
	}
	for _, f := range s.Check() {
		faults = append(faults, s.placed(f))
	}
	if len(faults) > 0 {
		return nil, settingsFault(faults, fault.ExitFailed)
	}
	return s, nil
}

// overlay merges layers without checking the result.
func overlay(layers []layer) (*Layered, error) {
	s := &Layered{k: koanf.New(sep), from: map[string]origin{}}
	for _, l := range layers {
		if len(l.values) == 0 {
			continue // each Load costs as much as all layers before it
		}
		if err := s.k.Load(confmap.Provider(l.values, ""), nil); err != nil {
			return nil, fmt.Errorf("settings: %s: %w", l.name, err)
		}
		maps.Copy(s.from, l.lines)
	}
	conf := koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(oneAsList, mapstructure.TextUnmarshallerHookFunc()),
	}}
	if err := s.k.UnmarshalWithConf("", &s.Settings, conf); err != nil {
		return nil, fault.New("`sluice config` shows where each comes from", "settings: %w", err)
	}
	s.Inherit(func(role, key string) bool { return s.k.Exists("roles" + sep + role + sep + key) })
	return s, nil
}

// loosened returns a fault for each value of the project's file that is looser than all other
// layers together.
func (s *Layered) loosened(layers []layer) (faults []error, err error) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.project })
	if i < 0 {
		return nil, nil
	}
	others := slices.Delete(slices.Clone(layers), i, i+1)
	below, err := overlay(others)
	if err != nil {
		return nil, err
	}
	s.HoldHosts(below.Settings)
	for _, key := range slices.Sorted(maps.Keys(layers[i].lines)) {
		if how := Looser(below.Settings, s.Settings, strings.Split(key, sep)); how != "" {
			faults = append(faults, layers[i].lines[key].fault("remove it there, or set "+Dotted(key)+
				" in your own file",
				"%s: %s (%s): a project's file can only tighten", Dotted(key), text.Line(how), below.source(key)))
		}
	}
	return faults, nil
}

// Value is a setting and its origin.
type Value struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"`
	Class string `json:"project"` // what the project's file may do with it
	Does  string `json:"does"`
}

// Values returns all settings, by key.
func (s *Layered) Values() (out []Value) {
	values := s.k.All()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		parts := strings.Split(key, sep)
		k, _ := KeyOf(parts)
		out = append(out, Value{Dotted(key), values[key], cmp.Or(s.from[key].String(), builtInName), k.Class,
			MeaningOf(parts).Does})
	}
	return out
}

// source returns where a key is set; for a role also by "*" or by the budget of an attempt.
func (s *Layered) source(key string) string {
	keys := []string{key}
	if parts := strings.Split(key, sep); len(parts) == 3 && parts[0] == "roles" {
		keys = append(keys, "roles"+sep+AnyRole+sep+parts[2], "budget"+sep+"attempt"+sep+parts[2])
	}
	for _, k := range keys {
		if at := s.from[k]; at.name != "" {
			return at.String()
		}
	}
	return builtInName
}

// placed adds the place to a fault that begins with a key.
func (s *Layered) placed(f error) error {
	key, _, _ := strings.Cut(f.Error(), ":")
	var best origin
	for k, at := range s.from {
		d := Dotted(k)
		if at.name != builtInName && (d == key || strings.HasPrefix(d, key+".") ||
			strings.HasPrefix(key, d+"[")) && (best.name == "" || at.String() < best.String()) {
			best = at
		}
	}
	if best.name == "" {
		return f
	}
	return best.fault("", "%w", f)
}

// oneAsList accepts a single name for a list.
func oneAsList(from, to reflect.Type, v any) (any, error) {
	if from.Kind() == reflect.String && to == reflect.TypeFor[[]string]() {
		return []string{v.(string)}, nil
	}
	return v, nil
}

// builtInName is the origin of a value that nobody set.
const builtInName = "built-in"

func builtInLayer() layer {
	raw, err := json.Marshal(Default())
	values := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &values)
	}
	if err != nil {
		panic("settings: the built-in ones cannot be written down: " + err.Error())
	}
	prune(values)
	l := layer{name: builtInName, values: values, lines: map[string]origin{}}
	leaves(values, "", func(key string, _ any) { l.lines[key] = origin{name: builtInName} })
	return l
}

// prune removes nil values: one would hide the value of the layer below.
func prune(m map[string]any) {
	maps.DeleteFunc(m, func(_ string, v any) bool {
		if sub, ok := v.(map[string]any); ok {
			prune(sub)
		}
		return v == nil
	})
}

// leaves visits every value of a nested map, by key.
func leaves(m map[string]any, prefix string, visit func(key string, v any)) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if sub, ok := m[name].(map[string]any); ok {
			leaves(sub, prefix+name+sep, visit)
			continue
		}
		visit(prefix+name, m[name])
	}
}

// put sets a value in a nested map.
func put(m map[string]any, key string, v any) {
	parts := strings.Split(key, sep)
	for _, p := range parts[:len(parts)-1] {
		sub, ok := m[p].(map[string]any)
		if !ok {
			sub = map[string]any{}
			m[p] = sub
		}
		m = sub
	}
	m[parts[len(parts)-1]] = v
}

// envLayer reads SLUICE_CONFIG_<KEY>: the key in capitals, its parts joined by "_". Roles and
// agents can only be in files.
func envLayer(environ []string) (layer, []error) {
	l := layer{name: "environment", values: map[string]any{}, lines: map[string]origin{}}
	known := map[string]string{}
	for _, key := range fixedKeys() {
		known[EnvPrefix+strings.ToUpper(strings.ReplaceAll(key, sep, "_"))] = key
	}
	var faults []error
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key, ok := known[name]
		if !ok {
			faults = append(faults, fmt.Errorf("environment: %s: no such key%s", text.Line(name),
				text.DidYouMean(name, slices.Sorted(maps.Keys(known)))))
			continue
		}
		faults = append(faults, l.take(key, value, name)...)
	}
	return l, faults
}

// setLayer reads --set KEY=VALUE.
func setLayer(set []string) (layer, []error) {
	l := layer{name: "--set", values: map[string]any{}, lines: map[string]origin{}}
	var faults []error
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		key := strings.ReplaceAll(name, ".", sep)
		if !ok {
			faults = append(faults, fmt.Errorf("--set %s: want KEY=VALUE", text.Line(s)))
			continue
		}
		if _, err := kindOf(key); err != nil {
			faults = append(faults, fmt.Errorf("--set %s: %w", text.Line(s), err))
			continue
		}
		faults = append(faults, l.take(key, value, "--set")...)
	}
	return l, faults
}

// take reads one value given as text.
func (l *layer) take(key, text, at string) []error {
	kind, err := kindOf(key)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", at, err)}
	}
	v, err := readValue(text, kind)
	if err != nil {
		return []error{fmt.Errorf("%s: %s: %w", at, Dotted(key), err)}
	}
	put(l.values, key, v)
	l.lines[key] = origin{name: at}
	return nil
}

// Dotted formats a key with dots.
func Dotted(key string) string { return strings.ReplaceAll(key, sep, ".") }
