package gates

import (
	"path"
	"slices"
	"strings"

	"sluice/internal/layout"
)

// view turns a file's name from the top of the checkout into its name from another folder: with a prefix, or without
// the folder's own name.
type view struct{ before, without string }

// name returns a file's name, if it is in the folder.
func (v view) name(file string) (string, bool) {
	rest, inside := strings.CutPrefix(file, v.without)
	return v.before + rest, inside && rest != ""
}

// rule is a glob of the law, for files as a view names them.
type rule struct {
	glob  string
	view  view
	start string // how every file begins that it can match, named from the top
}

// views returns the views from Root and Dir.
func (j Bases) views() []view {
	out := []view{{}}
	for _, base := range []string{j.Root, j.Dir} {
		v := view{}
		if rel, inside := layout.Rel(base, j.Top); inside {
			v.before = strings.TrimPrefix(rel+"/", "./")
		} else if rel, inside = layout.Rel(j.Top, base); inside {
			v.without = rel + "/"
		}
		if base != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// seenAs returns the names of a file from the folders in which it is.
func (l Law) seenAs(file string) (names []string) {
	for _, v := range l.views {
		if name, inside := v.name(file); inside {
			names = append(names, name)
		}
	}
	return names
}

// addRules adds the rules of globs.
func (l *Law) addRules(globs ...string) {
	for _, g := range globs {
		start := fixed(path.Clean(g))
		for _, v := range l.views {
			if rest, within := strings.CutPrefix(start, v.before); within {
				l.rules = append(l.rules, rule{g, v, v.without + rest})
			} else if strings.HasPrefix(v.before, start) {
				l.rules = append(l.rules, rule{g, v, v.without})
			}
		}
	}
}

// anyMatches reports whether a rule matches a file, named from the top.
func anyMatches(rules []rule, file string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool {
		if !strings.HasPrefix(file, r.start) { // nearly all of 500,000 files
			return false
		}
		name, inside := r.view.name(file)
		return inside && Matches(r.glob, name)
	})
}
