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

// interpreted looks at the script, module or code that an interpreter is given.
func (s *starts) interpreted(in interpreter, name string, words []string, from string, depth int) {
	shell := in.operand || in.names[0] == "su"
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
			if _, value, ok := strings.Cut(w, "="); ok && strings.Contains(value, "/") {
				s.file(value)
			}
			if len(w) > 1 && strings.Contains(in.values+"r", w[len(w)-1:]) && !strings.HasPrefix(w, "--") ||
				w == "--require" || w == "--import" || w == "--rcfile" || w == "--init-file" || w == "--loader" {
				if i++; i < len(words) && strings.Contains(words[i], "/") {
					s.file(words[i])
				}
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

// script adds a script, what is run in its place where it is a folder or lacks its ending, and the files of a tool that
// it is: sh gradlew, php vendor/bin/phpunit.
func (s *starts) script(in interpreter, name string, args []string, depth int) {
	s.file(name)
	ends := map[string][]string{"python": {"/__main__.py"}, "node": {".js", ".cjs", ".mjs", "/index.js", "/package.json"}}
	if path.Ext(name) == "" && !strings.ContainsRune(name, hole) {
		for _, end := range ends[in.names[0]] {
			s.file(path.Clean(name) + end)
		}
	}
	if t, ok := toolOf(strings.TrimSuffix(path.Base(name), path.Ext(name))); ok {
		s.tool(t, args, depth)
	}
}

// versionOnly reports whether options say all: node --test, python --version.
func versionOnly(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		return o == "--version" || o == "-version" || o == "-V" || o == "-v" || o == "--help" || o == "--test"
	})
}

// stdin is code that comes on the standard input.
func (s *starts) stdin(name, from string) {
	if from == "" || from == string(hole) {
		s.unknown("what %s reads from its input", name)
		return
	}
	s.file(from)
}

// module adds the files of a Python module, which may lie in the folder that a command runs in.
func (s *starts) module(name string, args []string, depth int) {
	if strings.ContainsRune(name, hole) {
		s.unknown("which module %q is", name)
		return
	}
	at := strings.ReplaceAll(name, ".", "/")
	for _, f := range []string{at + ".py", at + ".pyc", at + "/__init__.py", at + "/__main__.py"} {
		s.file(f)
	}
	if t, ok := toolOf(name); ok {
		s.tool(t, args, depth)
	}
}

// inline adds what code that stands in the command itself takes from the repo: modules of Python, and paths in quotes.
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
			s.file(w)
			if path.Ext(w) == "" {
				s.file(w + "/**")
				for _, ext := range []string{".js", ".cjs", ".json", ".rb", ".pm"} {
					s.file(w + ext)
				}
			}
		}
	}
}
