package shells

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// recipe is what a target of a Makefile, justfile or package.json runs.
type recipe struct {
	text  string   // shell
	needs []string // names that run with it
}

// includes is the key of a Makefile's include lines.
const includes = " "

// MaxFile is how many bytes of a file [TextOf] reads.
const MaxFile = 1 << 20

// Words returns the words of a shell text that may name a target for make or npm.
func Words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(";&|()<>'\"`", r)
	})
}

// TextOf returns the part of a file that a shell runs: all of a shell script; of a Makefile, justfile or package.json
// the targets among a command's words, with those that they need; of files like Taskfile.yml the lines that may be
// commands; nothing of other files. If a word or a need is unknown ($X), or no word is a target, that is all of a
// Makefile or justfile. vars are the values that all Makefiles and justfiles assign.
func TextOf(file, text string, words map[string]bool, vars map[string]string) string {
	if first, _, _ := strings.Cut(text, "\n"); path.Ext(file) == ".sh" || shebang().MatchString(first) {
		return text
	}
	var all map[string]*recipe
	var queue []string
	npm := strings.ToLower(path.Base(file)) == "package.json"
	blanks := recipeBlanks(file)
	switch {
	case npm:
		all, queue = npmScripts(text), []string{"preinstall", "install", "postinstall", "prepare"}
	case runsTasks(file):
		return taskLines(text)
	case blanks != "":
		text = filled(text, vars)
		all, queue = targets(text, blanks), []string{includes}
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
			if strings.Contains(strings.Join(r.needs, ""), "$") {
				queue = slices.AppendSeq(queue, maps.Keys(all))
			}
			delete(all, queue[0])
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// runsTasks reports whether a file of this name has commands in its lines, in YAML, TOML, JSON or INI.
func runsTasks(file string) bool {
	return slices.Contains(strings.Fields(`taskfile.yml taskfile.yaml taskfile.dist.yml taskfile.dist.yaml tox.ini tox.toml
		.pre-commit-config.yaml mise.toml .mise.toml pixi.toml makefile.toml composer.json deno.json deno.jsonc`),
		strings.ToLower(path.Base(file)))
}

// taskLines returns the lines of such a file that may be commands, without keys, quotes and brackets.
func taskLines(text string) string {
	value := regexp.MustCompile(`\{\{[^{}]*\}\}|\{\w+\}`) // what the program puts there
	key := regexp.MustCompile(`^[\s{]*(?:-\s+)*(?:[\w.-]+\s*[:=](?:\s+|$))?`)
	plain := strings.NewReplacer(`",`, ";", "',", ";", `"`, "", "'", "", "[", " ", "]", " ", ",", " ", "<<", " ")
	var out strings.Builder
	for line := range strings.Lines(value.ReplaceAllString(text, "$$X")) {
		line = strings.TrimSpace(key.ReplaceAllString(plain.Replace(line), ""))
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if _, known := toolOf(words[0]); known || strings.Contains(line, "/") || slices.ContainsFunc(words, isScript) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// shebang is the first line of a shell script.
func shebang() *regexp.Regexp { return regexp.MustCompile(`^#!.*\b(ba|da|k|z)?sh\b`) }

// recipeBlanks returns what a line of a recipe begins with in a Makefile or a justfile; "" for other files.
func recipeBlanks(file string) string {
	switch base := strings.ToLower(path.Base(file)); {
	case strings.HasSuffix(base, "makefile") || path.Ext(base) == ".mk":
		return "\t"
	case strings.HasSuffix(base, "justfile") || path.Ext(base) == ".just":
		return "\t "
	}
	return ""
}

// Assigned returns the variables that a Makefile or justfile assigns, each with all of its values: which of them
// counts, only make knows.
func Assigned(file, text string) map[string]string {
	if recipeBlanks(file) == "" {
		return nil
	}
	all := map[string]string{}
	for _, m := range assignment().FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
		name, value := cmp.Or(m[1], m[4]), strings.TrimSpace(m[3])
		switch {
		case m[4] != "":
			for line := range strings.Lines(m[5]) {
				value += shellOf(strings.TrimSpace(line)) + "; "
			}
		case m[2] == "+":
			value = " " + value
		}
		if !strings.HasPrefix(value, " ") && all[name] != "" {
			value = "; " + value
		}
		all[name] += value
	}
	return all
}

// assignment is NAME = value, also of one target, with its name, operator and value, or define NAME, with its name and
// text.
func assignment() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ *(?:[^\s:=#]+: *)?(?:(?:export|override) +)*` +
		`([\w.-]+)[ \t]*(\+|\?|!|:{1,3})?=([^#\n]*)|` +
		`^ *define +([\w.-]+).*\n((?s:.*?))^ *endef`)
}

// filled replaces the variables in a Makefile, $(X), or a justfile, {{X}}, by their values. What is not known stays.
func filled(text string, vars map[string]string) string {
	ref := regexp.MustCompile(`\$[({](?:call +)?([\w.-]+)(?:[:,][^(){}]*)?[)}]|\{\{ *([\w-]+) *\}\}`)
	for range maxNested {
		size := len(text)
		next := ref.ReplaceAllStringFunc(text, func(found string) string {
			m := ref.FindStringSubmatch(found)
			value, is := vars[m[1]+m[2]]
			if !is || size >= MaxFile {
				return found
			}
			size += len(value) - len(found)
			return value
		})
		if next == text {
			break
		}
		text = next
	}
	return text
}

// targets returns the rules of a Makefile or justfile, as far as they can be read without make. A line that begins with
// one of the blanks belongs to a recipe.
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
		if len(words) > 1 && slices.Contains([]string{"include", "-include", "sinclude", "import", "import?"}, words[0]) {
			names := regexp.MustCompile(`\$[({]wildcard ([^(){}]*)[)}]`).ReplaceAllString(strings.Join(words[1:], " "), "$1")
			all[includes].text += "make -f " + strings.ReplaceAll(names, " ", " -f ") + "\n"
			continue
		}
		if len(words) > 1 && (words[0] == "mod" || words[0] == "mod?") && blanks != "\t" {
			at := words[len(words)-1] // a name, or where the module is
			all[includes].text += fmt.Sprintf("make -f %[1]s -f %[1]s.just -f %[1]s/mod.just -f %[1]s/justfile\n", at)
			continue
		}
		if strings.Contains(line, "$(shell ") || strings.Contains(line, "$(wildcard ") {
			all[includes].text += ": " + shellOf(line) + "\n"
		}
		names, needs, is := strings.Cut(line, ":")
		if name, value, _ := strings.Cut(line, "="); strings.TrimRight(name, " :?") == "SHELL" {
			all[includes].text += value + "\n"
		}
		if !is || blanks == "\t" && strings.Contains(names, "=") || strings.HasPrefix(strings.TrimLeft(needs, ":"), "=") {
			continue
		}
		of = nil
		needs, command, _ := strings.Cut(strings.TrimLeft(needs, ":"), ";")
		for _, name := range strings.Fields(names) {
			if strings.ContainsAny(name, "%$") { // only make knows for which targets it is
				name = includes
			}
			if all[name] == nil {
				all[name] = &recipe{}
			}
			all[name].needs = append(all[name].needs, strings.Fields(needs)...)
			of = append(of, all[name])
		}
		if strings.HasPrefix(names, ".") { // .DEFAULT, .c.o
			of = append(of, all[includes])
		}
		for _, r := range of {
			r.text += shellOf(command) + "\n"
		}
	}
	return all
}

// shellOf returns what make gives the shell for a line of a recipe. It replaces few of make's own variables.
func shellOf(command string) string {
	r := strings.NewReplacer("$$", "$", "$(MAKE)", "make", "${MAKE}", "make", "$(shell ", "$(",
		"$(wildcard ", "$(ls ", "$<", "$1", "$^", "$1")
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
