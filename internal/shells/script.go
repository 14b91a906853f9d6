package shells

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Script returns what a shell script starts, also by the values that it gives its variables.
func Script(text string) Started {
	s := &starts{dirs: []string{"."}}
	text = strings.ReplaceAll(text, string(hole), "?")
	s.text(text, 0)
	if s.Bound != "" {
		return s.done()
	}
	lines, _ := lex(text, nil, 0)
	for n, values := range assigned(lines) {
		if n == maxValues {
			s.bound("more than %d values of a variable", maxValues)
			break
		}
		s.vars = values
		s.text(text, 0)
	}
	if s.Unknown != "" {
		s.Folders = folders(lines)
	}
	return s.done()
}

// assigned returns the values that a script gives its variables, one of each at a time. * stands for what is not known.
func assigned(lines []line) (out []Vars) {
	values := map[string][]string{}
	put := func(name, value string) {
		value = strings.ReplaceAll(value, string(hole), "*")
		if strings.Trim(value, "*/. ") != "" && !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	most := 0
	for _, l := range lines {
		for n, word := range l.words {
			if name, value, _ := strings.Cut(word, "="); isAssignment(word) {
				put(name, value)
			} else if n > 2 && l.words[0] == "for" {
				put(l.words[1], word)
			}
		}
	}
	for _, all := range values {
		most = max(most, len(all))
	}
	for n := range most {
		vars := Vars{}
		for name, all := range values {
			vars[name] = all[min(n, len(all)-1)]
		}
		out = append(out, vars)
	}
	return out
}

// folders returns the words of a script that may name a folder.
func folders(lines []line) []string {
	all := map[string]bool{}
	for _, l := range lines {
		for _, w := range l.words {
			if before, _, open := strings.Cut(w, string(hole)); open {
				w = before[:strings.LastIndexByte(before, '/')+1]
			}
			if w = path.Clean(w); w != "." && !strings.HasPrefix(w, "-") {
				all[w] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
