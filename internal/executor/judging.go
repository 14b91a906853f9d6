package executor

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
)

// lawGlobs are what says how work is done and judged: a step that changed some of it has a person look, whatever `protect`
// names.
func lawGlobs() []string {
	return []string{".workflow/specs/**", ".workflow/prompts/**", ".workflow/schemas/**", ".workflow/config.yaml"}
}

// lawNames are files that say so in whatever folder they are: to git, or to the agents that come after.
func lawNames() []string {
	return []string{".gitattributes", ".gitmodules", ".gitignore", "CLAUDE.md", "AGENTS.md"}
}

// judging is a changed file as it may be named: from its checkout, from the repo's root, from where commands run.
type judging struct{ root, top, dir string }

func (j judging) names(file string) []string {
	names := []string{file}
	abs := filepath.Join(j.top, filepath.FromSlash(file))
	for _, base := range []string{j.root, j.dir} {
		if rel, err := filepath.Rel(base, abs); base != "" && err == nil && filepath.IsLocal(rel) {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return append(names, filepath.ToSlash(abs))
}

// law is what decides over the work of a run: what `protect` names, what says how it is judged, and the programs that
// gates, criteria, hooks and roles start.
type law struct {
	judging
	globs    []string
	names    []string // base names
	programs map[string]bool
	bases    map[string]bool // base names of the programs
	plain    bool            // `protect` names nothing: the globs are those of .workflow/
}

// lawOf makes the law of a spec. commands are those of the roles' agents.
func lawOf(spec *engine.Spec, commands [][]string, j judging) law {
	l := law{judging: j, globs: append(slices.Clone(spec.Protect), lawGlobs()...), names: lawNames(), programs: judges(spec)}
	for _, c := range commands {
		if p := programOf(c); p != "" {
			l.programs[path.Clean(p)] = true
		}
	}
	l.plain, l.bases = len(spec.Protect) == 0, map[string]bool{}
	for p := range l.programs {
		l.bases[path.Base(p)] = true
	}
	return l
}

// has reports whether a file, named from the top of its checkout, is law, and whether only as a program.
func (l law) has(file string) (is, program bool) {
	base := path.Base(file)
	if slices.Contains(l.names, base) {
		return true, false
	}
	if l.plain && !strings.Contains(file, ".workflow/") && !strings.Contains(filepath.ToSlash(l.top), ".workflow") && !l.bases[base] {
		return false, false // most of 500,000 files
	}
	names := l.judging.names(file)
	for _, g := range l.globs {
		if slices.ContainsFunc(names[:len(names)-1], func(n string) bool { return matches(g, n) }) {
			return true, false
		}
	}
	program = slices.ContainsFunc(names, func(n string) bool { return l.programs[n] })
	return program, program
}

// guarded are the changed files that are law, but programs which the step was to write (outs, from where commands run).
func (l law) guarded(files, outs []string) []string {
	var out []string
	for _, f := range files {
		is, program := l.has(f)
		if program {
			names := l.judging.names(f)
			is = !slices.ContainsFunc(outs, func(o string) bool { return slices.Contains(names, path.Clean(filepath.ToSlash(o))) })
		}
		if is && len(out) < maxProtected {
			out = append(out, f)
		}
	}
	return out
}

// judges are the programs that the gates, criteria and hooks of a spec start, as far as their commands name them by a path:
// the first word of each part, or the script that an interpreter is given.
func judges(spec *engine.Spec) map[string]bool {
	out := map[string]bool{}
	add := func(c *engine.Command) {
		if c == nil {
			return
		}
		for _, words := range commandsIn(c) {
			if p := programOf(words); p != "" {
				out[path.Clean(p)] = true
			}
		}
	}
	for _, g := range spec.Gates {
		add(g.Reviewer.Run)
	}
	for _, st := range spec.Steps {
		for _, c := range st.Criteria {
			add(c.Command)
		}
		if s := spec.SetupOf(st); s != nil {
			add(&s.Run)
		}
	}
	add(spec.AfterStep)
	add(spec.AfterRun)
	return out
}

// commandsIn takes a command apart into the words of those it starts, roughly: quotes are dropped, and what a shell would
// make of variables and substitutions is not known.
func commandsIn(c *engine.Command) [][]string {
	if len(c.Argv) > 0 {
		var words []string
		for _, t := range c.Argv {
			words = append(words, t.Source)
		}
		return [][]string{words}
	}
	var out [][]string
	for _, part := range strings.FieldsFunc(c.Shell, func(r rune) bool { return strings.ContainsRune(";&|\n(){}`", r) }) {
		if words := strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(part)); len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

// programOf is the file that a command's words start; "" where that is none with a path, nor a script.
func programOf(words []string) string {
	for len(words) > 0 && (isAssignment(words[0]) || slices.Contains([]string{"if", "then", "else", "elif", "while", "until", "do", "!", "exec", "time", "env", "command", "nice", "timeout"}, words[0])) {
		if words[0] == "timeout" && len(words) > 1 {
			words = words[1:] // its duration
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	first := filepath.ToSlash(words[0])
	base := strings.TrimRight(path.Base(first), "0123456789.")
	inline, interprets := inlineFlags(base)
	if !interprets {
		if strings.Contains(first, "/") {
			return first
		}
		return ""
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			return filepath.ToSlash(w)
		}
		if slices.Contains(inline, w) {
			return "" // the code itself, or a module's name
		}
	}
	return ""
}

// inlineFlags are those of an interpreter after which no script follows; not ok for what is none.
func inlineFlags(program string) (flags []string, ok bool) {
	switch program {
	case "sh", "bash", "dash", "zsh":
		return []string{"-c"}, true
	case "python":
		return []string{"-c", "-m"}, true
	case "node", "bun", "deno", "ruby", "perl", "php":
		return []string{"-e", "-p", "-r", "--eval"}, true
	}
	return nil, false
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/.-")
}
