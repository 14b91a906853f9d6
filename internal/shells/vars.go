package shells

import "strings"

// Vars are environment variables whose value is known.
type Vars map[string]string

// VarName returns the environment variable of a run's var.
func VarName(name string) string {
	return "SLUICE_VAR_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// filled replaces the expressions of a spec by their values.
func (v Vars) filled(a string) string {
	a = strings.ReplaceAll(a, string(hole), "?")
	for {
		before, rest, ok := strings.Cut(a, "${{")
		if !ok {
			return a
		}
		inner, after, _ := strings.Cut(rest, "}}")
		value := string(hole)
		if name, ok := strings.CutPrefix(strings.TrimSpace(inner), "vars."); ok && v != nil {
			if known, ok := v[VarName(name)]; ok {
				value = strings.NewReplacer(string(hole), "?", "${{", "?").Replace(known)
			}
		}
		a = before + value + after
	}
}

// known returns a variable's value: a given one, the folder where commands run, or one outside the repo.
func (v Vars) known(name string) (string, bool) {
	if value, ok := v[name]; ok {
		return strings.NewReplacer(string(hole), "?", "*", string(hole)).Replace(value), true
	}
	switch name {
	case "PWD", "SLUICE_ROOT":
		return ".", true
	case "HOME":
		return "~", true
	}
	return "", false
}
