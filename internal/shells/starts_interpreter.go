package shells

import (
	"path"
	"slices"
	"strings"
)

func interpreterOf(names ...string) (interpreter, bool) {
	for _, in := range interpreters() {
		if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(in.names, n) }) && in.names[0] != "env" {
			return in, true
		}
	}
	return interpreter{}, false
}

// interpreted adds the script, module or code that an interpreter gets.
func (s *starts) interpreted(in interpreter, name string, words []string, from string, depth int) {
	shell := in.operand || in.names[0] == "su"
	s.before(in, words[1:])
	if name == "tsx" || name == "ts-node" { // which may have other modules loaded
		s.setting("tsconfig.json")
	}
	if codes := in.code(words, 1); len(codes) > 0 {
		for _, i := range codes {
			switch {
			case shell && strings.ContainsRune(words[i], hole):
				s.unknown("what %s is given: %q", name, words[i])
			case shell:
				s.text(words[i], depth+1)
			default:
				s.inline(in, words[i])
			}
		}
		return
	}
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-" || w == "-s":
			s.stdin(name, from)
			return
		case in.names[0] == "python" && strings.HasPrefix(w, "-m"):
			if w == "-m" && i+1 < len(words) {
				i, w = i+1, "-m"+words[i+1]
			}
			s.module(strings.TrimPrefix(w, "-m"), words[i+1:], depth)
			return
		case in.names[0] == "node" && w == "--run":
			s.file("package.json")
			return
		case strings.HasPrefix(w, "-") || shell && strings.HasPrefix(w, "+"):
			if in.takesNext(w) {
				i++
			}
		default:
			if t, ok := toolOf(name); ok { // deno task, bun run
				s.tool(t, words[i:], depth)
			} else {
				s.script(in, w, words[i+1:], depth)
			}
			return
		}
	}
	if t, ok := toolOf(name); ok {
		s.tool(t, nil, depth)
	} else if !versionOnly(words[1:]) {
		s.stdin(name, from)
	}
}

// script adds a script and, if it is a tool (sh gradlew, php vendor/bin/phpunit), the tool's files.
func (s *starts) script(in interpreter, name string, args []string, depth int) {
	s.loaded(in, name)
	if t, ok := toolOf(strings.TrimSuffix(path.Base(name), path.Ext(name))); ok {
		s.tool(t, args, depth)
	}
}

// loaded adds a file, and what an interpreter loads if the name lacks its ending or is a folder's.
func (s *starts) loaded(in interpreter, name string) {
	s.file(name)
	if path.Ext(name) == "" && !strings.ContainsRune(name, hole) {
		for _, end := range in.suffixes {
			s.file(path.Clean(name) + end)
		}
	}
}

// versionOnly reports whether options alone are a whole command: node --test, python --version.
func versionOnly(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		return o == "--version" || o == "-version" || o == "-V" || o == "-v" || o == "--help" || o == "--test"
	})
}

// stdin handles code that comes on standard input.
func (s *starts) stdin(name, from string) {
	if from == "" || from == string(hole) {
		s.unknown("what %s reads from its input", name)
		return
	}
	s.file(from)
}

// before adds what an interpreter reads before its script: its settings, what options name, and Python's modules.
func (s *starts) before(in interpreter, args []string) {
	for _, f := range in.files {
		s.file(f)
	}
	switch in.names[0] {
	case "python":
		s.replaceable(args)
	case "node":
		s.below(nodeModules)
	}
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		value, ok := strings.CutPrefix(args[i], "-r")
		if _, joined, cut := strings.Cut(args[i], "="); cut {
			value, ok = joined, true
		} else if in.takesNext(args[i]) && i+1 < len(args) {
			i++
			value, ok = args[i], true
		}
		if ok && strings.Contains(value, "/") {
			s.loaded(in, value)
		}
	}
}

// nodeModules is where Node looks for modules and npm for programs, in each folder from the script's upward. What git
// ignores there does not count: a setup makes it.
const nodeModules = "node_modules/**"

// takesNext reports whether the next argument is an option's value.
func (in interpreter) takesNext(option string) bool {
	if strings.HasPrefix(option, "--") {
		return slices.Contains([]string{"--require", "--import", "--rcfile", "--init-file", "--loader"}, option)
	}
	return len(option) > 1 && strings.Contains(in.values+"r", option[len(option)-1:])
}

// replaceable adds the folders in which a file can replace a module of Python's library.
func (s *starts) replaceable(args []string) {
	for i := 0; ; i++ {
		switch {
		case i >= len(args) || args[i] == "-":
			s.imports(".")
			return
		case !strings.HasPrefix(args[i], "-"):
			s.imports(path.Dir(args[i]))
			if path.Ext(args[i]) == "" { // a folder with a __main__.py
				s.imports(args[i])
			}
			return
		case strings.HasPrefix(args[i], "--"):
		case args[i] == "-W" || args[i] == "-X":
			i++
		case args[i][1] == 'W' || args[i][1] == 'X':
		case strings.ContainsAny(args[i], "IP"): // it looks in no such folder
			return
		case strings.ContainsAny(args[i], "cm"):
			s.imports(".")
			return
		}
	}
}

// imports adds a folder in which Python looks for modules first.
func (s *starts) imports(dir string) {
	for _, at := range s.dirs {
		if at = path.Join(at, dir); path.IsAbs(dir) {
			at = dir
		}
		if len(s.Modules) < maxFiles && !strings.ContainsRune(at, hole) && !strings.HasPrefix(at, "**") {
			s.Modules = append(s.Modules, at)
		}
	}
}

// module adds the files of a Python module, which may be in the folder where the command runs.
func (s *starts) module(name string, args []string, depth int) {
	if strings.ContainsRune(name, hole) {
		s.unknown("which module %q is", name)
		return
	}
	at := strings.ReplaceAll(name, ".", "/")
	for _, end := range ModuleEnds() {
		s.file(at + end)
	}
	s.file(at + "/__main__.py")
	if t, ok := toolOf(name); ok {
		s.tool(t, args, depth)
	}
}

// inline adds what code in the command itself takes from the repo: Python modules, and paths in quotes.
func (s *starts) inline(in interpreter, code string) {
	if strings.ContainsRune(code, hole) {
		s.unknown("what %s is given: %q", in.names[0], code)
		return
	}
	if in.names[0] == "python" {
		for _, stmt := range strings.FieldsFunc(code, func(r rune) bool { return r == ';' || r == '\n' || r == ':' }) {
			words := strings.FieldsFunc(stmt, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
			if len(words) > 1 && words[0] == "from" {
				s.module(words[1], nil, 0)
			}
			if len(words) > 1 && words[0] == "import" {
				for _, w := range words[1:] {
					if w == "as" {
						break
					}
					s.module(w, nil, 0)
				}
			}
		}
		return
	}
	for _, w := range strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune("\"'`()", r) }) {
		if strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") {
			s.loaded(in, w)
			if path.Ext(w) == "" {
				s.folder(w)
			}
		}
	}
}
