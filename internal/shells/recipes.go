package shells

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// recipe is what a name of a Makefile, a justfile or a package.json runs.
type recipe struct {
	text  string   // shell
	needs []string // names that run with it
}

// includes is the key of a Makefile's include lines.
const includes = " "

// MaxFile is how much of a file [TextOf] needs, in bytes.
const MaxFile = 1 << 20

// Words returns what a shell text may give make or npm as the name of a target.
func Words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(";&|()<>'\"`", r)
	})
}

// TextOf returns what a shell runs of a file: all of a shell script; of a Makefile, a justfile or a package.json, the
// targets among the words of a command, with what these need; nothing of other files. Where a word is not known ($X),
// or no word is a target, that is all of a Makefile or justfile.
func TextOf(file, text string, words map[string]bool) string {
	if first, _, _ := strings.Cut(text, "\n"); path.Ext(file) == ".sh" || shebang().MatchString(first) {
		return text
	}
	var all map[string]*recipe
	var queue []string
	base := strings.ToLower(path.Base(file))
	npm := base == "package.json"
	switch {
	case npm:
		all, queue = npmScripts(text), []string{"preinstall", "install", "postinstall", "prepare"}
	case strings.HasSuffix(base, "justfile") || path.Ext(base) == ".just":
		all, queue = targets(text, "\t "), []string{includes}
	case strings.HasSuffix(base, "makefile") || path.Ext(base) == ".mk":
		all, queue = targets(text, "\t"), []string{includes}
	}
	if len(text) >= MaxFile && all != nil {
		return text // too long for [Script], which says so
	}
	known, open := false, false
	for w := range words {
		open = open || strings.Contains(w, "$")
		if all[w] != nil {
			queue, known = append(queue, w), true
		}
	}
	switch {
	case open || !known && !npm:
		queue = slices.AppendSeq(queue, maps.Keys(all))
	case !known: // npm t
		queue = append(queue, "test")
	}
	var out []string
	for ; len(queue) > 0; queue = queue[1:] {
		if r := all[queue[0]]; r != nil {
			out = append(out, r.text)
			queue = append(queue, append(Words(r.text), r.needs...)...) // make and npm may call themselves
			delete(all, queue[0])
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// shebang is the first line of a shell script.
func shebang() *regexp.Regexp { return regexp.MustCompile(`^#!.*\b(ba|da|k|z)?sh\b`) }

// targets returns the rules of a Makefile or justfile, as far as they can be read without make. A line that begins with
// one of the blanks is of a recipe.
func targets(text, blanks string) map[string]*recipe {
	all := map[string]*recipe{includes: {}}
	var of []*recipe
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if command := strings.TrimLeft(line, blanks); command != line {
			for _, r := range of {
				r.text += shellOf(command)
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) > 1 && slices.Contains([]string{"include", "-include", "sinclude", "import"}, words[0]) {
			all[includes].text += "make -f " + strings.Join(words[1:], " -f ") + "\n"
			continue
		}
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
			r := all[name]
			r.needs = append(r.needs, strings.Fields(needs)...)
			r.text += shellOf(command) + "\n"
			of = append(of, r)
		}
	}
	return all
}

// shellOf returns what make gives the shell for a line of a recipe, but for most of make's own variables.
func shellOf(command string) string {
	r := strings.NewReplacer("$$", "$", "$(MAKE)", "make", "${MAKE}", "make")
	return r.Replace(strings.TrimLeft(command, " \t@+-"))
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
