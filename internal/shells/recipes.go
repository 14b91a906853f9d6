package shells

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// recipe is what a name of a Makefile, a justfile or a package.json runs.
type recipe struct {
	text  string   // shell
	needs []string // names that run with it
}

// MaxFile is how much of a file [TextOf] needs, in bytes.
const MaxFile = 1 << 20

// TextOf returns what a shell runs of a file for the words of a command: all of a shell script; of a Makefile, a
// justfile or a package.json, what the words' targets run and need, or the first target if none of them is one; nothing
// of other files.
func TextOf(file, text string, words []string) string {
	if first, _, _ := strings.Cut(text, "\n"); path.Ext(file) == ".sh" || shebang().MatchString(first) {
		return text
	}
	var all map[string]*recipe
	var first string
	switch strings.ToLower(path.Base(file)) {
	case "makefile", "gnumakefile":
		all, first = targets(text, "\t")
	case "justfile", ".justfile":
		all, first = targets(text, "\t ")
	case "package.json":
		all = npmScripts(text)
	}
	if len(text) >= MaxFile && all != nil {
		return text // too long for [Script], which says so
	}
	found := func(name string) bool { return all[name] != nil }
	if !slices.ContainsFunc(words, found) {
		words = []string{first}
	}
	var out strings.Builder
	for queue := slices.Clone(words); len(queue) > 0; queue = queue[1:] {
		if r := all[queue[0]]; r != nil {
			out.WriteString(r.text)
			queue = append(append(queue, r.needs...), strings.Fields(r.text)...) // make and npm may call themselves
			delete(all, queue[0])
		}
	}
	return out.String()
}

// shebang is the first line of a shell script.
func shebang() *regexp.Regexp { return regexp.MustCompile(`^#!.*\b(ba|da|k|z)?sh\b`) }

// targets returns the rules of a Makefile or justfile, as far as they can be read without make, and the name of the
// first. A line that begins with one of the blanks is of a recipe.
func targets(text, blanks string) (all map[string]*recipe, first string) {
	all = map[string]*recipe{}
	var of []*recipe
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if command := strings.TrimLeft(line, blanks); command != line {
			for _, r := range of {
				r.text += shellOf(command)
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		names, needs, is := strings.Cut(line, ":")
		if !is || blanks == "\t" && strings.Contains(names, "=") || strings.HasPrefix(strings.TrimLeft(needs, ":"), "=") {
			continue
		}
		of = nil
		needs, command, _ := strings.Cut(strings.TrimLeft(needs, ":"), ";")
		for _, name := range strings.Fields(names) {
			if all[name] == nil {
				all[name] = &recipe{}
			}
			if first == "" && !strings.HasPrefix(name, ".") {
				first = name
			}
			r := all[name]
			r.needs = append(r.needs, strings.Fields(needs)...)
			r.text += shellOf(command) + "\n"
			of = append(of, r)
		}
	}
	return all, first
}

// shellOf returns what make gives the shell for a line of a recipe, but for make's own variables.
func shellOf(command string) string {
	return strings.ReplaceAll(strings.TrimLeft(command, " \t@+-"), "$$", "$")
}

// npmScripts returns the scripts of a package.json. Those named pre… and post… run around their own.
func npmScripts(text string) map[string]*recipe {
	var pkg struct {
		Scripts map[string]string `json:"scripts"`
	}
	_ = json.Unmarshal([]byte(text), &pkg) // the program that runs it reports a fault
	all := map[string]*recipe{}
	for name, script := range pkg.Scripts {
		all[name] = &recipe{text: script + "\n", needs: []string{"pre" + name, "post" + name}}
	}
	return all
}
