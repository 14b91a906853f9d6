package specs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/fault"
)

// Vars converts a run's vars from command-line texts. Each must be declared and have its default's
// type, and every required one must be given. Others are left out, so that their defaults apply. It
// returns all faults.
func Vars(spec *engine.Spec, given map[string]string) (map[string]any, []error) {
	out := map[string]any{}
	var faults []error
	known := map[string]engine.Var{}
	for _, v := range spec.Vars {
		known[v.Name] = v
		if _, ok := given[v.Name]; v.Required && !ok {
			about := ""
			if v.Description != "" {
				about = " (" + v.Description + ")"
			}
			faults = append(faults,
				fault.New(fmt.Sprintf("give it as --var %s=…", v.Name), "%s needs the var %s%s", spec.ID, v.Name, about))
		}
	}
	b := &book{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		v, ok := known[name]
		if !ok {
			all := slices.Sorted(maps.Keys(known))
			hint := cmp.Or(b.near(name, all), ": it declares "+cmp.Or(strings.Join(all, ", "), "none"))
			faults = append(faults, fmt.Errorf("var %s: workflow %s has no var of this name%s", name, spec.ID, hint))
			continue
		}
		value, err := b.varOf(v, given[name], spec.ID)
		if err != nil {
			faults = append(faults, fmt.Errorf("var %s: %w", name, err))
			continue
		}
		out[name] = value
	}
	return out, faults
}

func (b *book) varOf(v engine.Var, text, workflow string) (any, error) {
	like := v.Default
	if len(v.OneOf) > 0 {
		like = v.OneOf[0]
	}
	value, err := typed(text, like)
	if len(v.OneOf) > 0 && !slices.Contains(v.OneOf, value) {
		err = fmt.Errorf("%s is none of %s%s", quote(text), choiceWords(v.OneOf),
			b.near(text, strings.Split(choiceWords(v.OneOf), ", ")))
	}
	if err == nil && v.Required && strings.TrimSpace(text) == "" {
		err = fmt.Errorf("it is empty, and %s needs it", workflow)
	}
	return value, err
}

// typed parses a text as a value of the default's type.
func typed(s string, like any) (any, error) {
	switch like.(type) {
	case bool:
		if s != "true" && s != "false" {
			return nil, fmt.Errorf("%s is not true or false", quote(s))
		}
		return s == "true", nil
	case float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != f || f > 1e300 || f < -1e300 {
			return nil, fmt.Errorf("%s is not a number", quote(s))
		}
		return f, nil
	}
	return s, nil
}
