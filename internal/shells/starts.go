package shells

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Started is what a command starts, as far as its text shows.
type Started struct {
	// Files are programs, scripts, and the files by which a well-known tool works, relative to where the command runs,
	// or absolute. **/ at the start is an unknown folder; /** at the end is all of a folder.
	Files []string
	// Settings are those of Files by which a well-known tool works.
	Settings []string
	// Below are names of files that a tool finds by itself in any folder of the work. * is any text; /** at the end is
	// all of a folder.
	Below []string
	// Modules are folders in which Python looks for modules before its own library ([OwnModule]).
	Modules []string
	// Programs are names that PATH resolves.
	Programs []string
	// Folders are those named in a script that starts something unknown.
	Folders []string
	// Unknown is the first part of the command that may run anything; "" = none.
	Unknown string
	// Bound is the first limit that was hit; "" = none.
	Bound string
}

// Bounds of what is looked at.
const (
	MaxText   = 64 << 10 // bytes of a command, or of a script
	maxFiles  = 500
	maxDirs   = 8
	maxNested = 10 // commands that commands start
	maxValues = 50 // of a script's variable
)

// Starts returns what an argument list starts. A ${{ … }} in an argument is unknown, unless vars has its value.
func Starts(argv []string, vars Vars) Started {
	s := &starts{dirs: []string{"."}, vars: vars}
	words := make([]string, len(argv))
	size := 0
	for i, a := range argv {
		words[i] = vars.filled(a)
		size += len(a)
	}
	if size > MaxText {
		s.bound("more than %d bytes", MaxText)
	} else {
		s.command(line{words: words}, 0)
	}
	return s.done()
}

type starts struct {
	Started
	vars Vars
	dirs []string // where a command may run: `cd` adds one
}

func (s *starts) done() Started {
	slices.Sort(s.Files)
	s.Files = slices.Compact(s.Files)
	slices.Sort(s.Programs)
	s.Programs = slices.Compact(s.Programs)
	slices.Sort(s.Modules)
	s.Modules = slices.Compact(s.Modules)
	return s.Started
}

// below adds a name to Below.
func (s *starts) below(name string) {
	if !slices.Contains(s.Below, name) {
		s.Below = append(s.Below, name)
	}
}

func (s *starts) unknown(format string, args ...any) {
	if s.Unknown == "" {
		s.Unknown = strings.NewReplacer(string(hole), "…", `\x00`, "…").Replace(fmt.Sprintf(format, args...))
	}
}

// bound notes a limit that was hit.
func (s *starts) bound(format string, args ...any) {
	if s.Bound == "" {
		s.Bound = fmt.Sprintf(format, args...)
	}
	s.unknown(format, args...)
}

func (s *starts) text(text string, depth int) {
	if len(text) > MaxText {
		s.bound("a text of more than %d bytes", MaxText)
		return
	}
	lines, ok := lex(text, s.vars, depth)
	if !ok || depth > maxNested {
		s.bound("commands within commands, more than %d deep", maxNested)
		return
	}
	for _, l := range lines {
		s.command(l, depth)
	}
}

// file adds a file by the name that a command gives it.
func (s *starts) file(name string) {
	for _, at := range s.places(name) {
		if len(s.Files) >= maxFiles {
			s.bound("more than %d files", maxFiles)
			return
		}
		if !slices.Contains(s.Files, at) {
			s.Files = append(s.Files, at)
		}
	}
}

// setting adds a file by which a tool works.
func (s *starts) setting(name string) {
	s.file(name)
	s.Settings = append(s.Settings, s.places(name)...)
}

// places returns the paths that a file named by a command can have.
func (s *starts) places(name string) (out []string) {
	before, rest, open := strings.Cut(name, string(hole))
	switch {
	case name == "" || strings.HasPrefix(name, "~"):
		return nil // of the person's home
	case open && strings.Contains(before, "/"):
		name = before[:strings.LastIndexByte(before, '/')+1] + "**"
	case open:
		after := rest[strings.LastIndexByte(rest, hole)+1:]
		if before != "" || !strings.HasPrefix(after, "/") || path.Clean(after) == "/" {
			s.unknown("what %q stands for", name)
			return nil
		}
		name = "**" + path.Clean(after)
	}
	if path.IsAbs(name) || strings.HasPrefix(name, "**/") {
		return []string{path.Clean(name)}
	}
	for _, dir := range s.dirs {
		out = append(out, path.Join(dir, name))
	}
	return out
}

// program adds a program by the name that a command gives it.
func (s *starts) program(name string) {
	switch {
	case strings.Contains(name, "/") || strings.ContainsRune(name, hole):
		s.file(name)
	case isScript(name): // uv run check.py
		s.file(name)
	case len(s.Programs) < maxFiles:
		s.Programs = append(s.Programs, name)
	default:
		s.bound("more than %d programs", maxFiles)
	}
}

// folder adds all files of a folder.
func (s *starts) folder(name string) {
	if name = strings.TrimSuffix(path.Clean(name), "/"); name != "." && !strings.HasPrefix(name, "~") {
		s.file(name + "/**")
	}
}

// enter records that later commands may run in another folder.
func (s *starts) enter(dir string) {
	if dir == "" || strings.HasPrefix(dir, "~") {
		return
	}
	if dir == "-" || len(s.dirs) >= maxDirs {
		dir = string(hole)
	}
	for _, at := range slices.Clone(s.dirs) {
		next := path.Join(at, dir)
		switch {
		case strings.ContainsRune(dir, hole):
			next = "**"
		case path.IsAbs(dir):
			next = path.Clean(dir)
		}
		if !slices.Contains(s.dirs, next) && len(s.dirs) <= maxDirs {
			s.dirs = append(s.dirs, next)
		}
	}
}

// command adds what one simple command starts.
func (s *starts) command(l line, depth int) {
	words := s.unwrapped(l.words, depth)
	if len(words) == 0 {
		return
	}
	if depth > maxNested {
		s.bound("commands that start commands, more than %d deep", maxNested)
		return
	}
	name, args := words[0], words[1:]
	s.program(name)
	if path.Ext(name) == ".py" {
		s.imports(path.Dir(name))
	}
	base := strings.TrimSuffix(path.Base(name), ".exe")
	plain := strings.TrimRight(base, "0123456789.")
	switch {
	case base == "eval":
		if all := strings.Join(args, " "); strings.ContainsRune(all, hole) {
			s.unknown("what eval is given: %q", all)
		} else {
			s.text(all, depth+1)
		}
	case base == "." || base == "source":
		if len(args) > 0 {
			s.file(args[0])
		}
	case base == "cd" || base == "pushd" || base == "popd":
		s.enter(append(slices.DeleteFunc(slices.Clone(args),
			func(a string) bool { return a == "--" || a == "-P" || a == "-L" }), "-")[0])
	case base == "export" || base == "declare" || base == "local" || base == "readonly" || base == "typeset":
		for _, a := range args {
			s.assigned(a)
		}
	case base == "trap":
		if len(args) > 0 {
			s.text(args[0], depth+1)
		}
	case base == "run-parts" && len(args) > 0:
		s.folder(args[len(args)-1])
	case base == "find":
		s.found(args, depth)
	default:
		if in, ok := interpreterOf(base, plain); ok {
			s.interpreted(in, plain, append([]string{name}, args...), l.from, depth)
		} else if t, ok := toolOf(base); ok {
			s.tool(t, args, depth)
		} else if !slices.Contains(readers(), base) {
			s.scripts(append([]string{l.from}, args...))
		}
	}
}

// assigned adds what NAME=VALUE before a command changes: where programs are found, or files that run first.
func (s *starts) assigned(word string) {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		return
	}
	paths := strings.HasSuffix(name, "PATH") || name == "BASH_ENV" || name == "ENV" || name == "LD_PRELOAD" ||
		strings.HasSuffix(name, "OPTIONS") || strings.HasSuffix(name, "OPT")
	if !paths {
		for _, w := range Words(value) { // RUSTC_WRAPPER=ci/wrap
			if strings.Contains(w, "/") && (path.Ext(w) == "" || path.Ext(w) == ".sh") && !strings.ContainsRune(w, hole) {
				s.file(w)
			}
		}
		return
	}
	for _, p := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(":; =", r) }) {
		if path.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "-") || p == string(hole) {
			continue // $PATH and the like: what was there before
		}
		if path.Clean(p) == "." {
			s.unknown("%s has the folder in which commands run", name)
			continue
		}
		s.file(p)
		s.folder(p)
	}
}

// found adds what find starts.
func (s *starts) found(args []string, depth int) {
	for i, a := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a) {
			continue
		}
		var words []string
		for _, w := range args[i+1:] {
			if w == ";" || w == "+" {
				break
			}
			words = append(words, strings.ReplaceAll(w, "{}", string(hole)))
		}
		s.command(line{words: words}, depth+1)
	}
}

// wrapper is a program that starts the command in its arguments.
type wrapper struct {
	names   []string
	values  string // short options that take the next argument
	operand int    // arguments before the command
}

func wrappers() []wrapper {
	return []wrapper{
		{names: []string{"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "fi", "done", "coproc"}},
		{names: []string{"exec"}, values: "a"},
		{names: []string{"env"}, values: "uC"},
		{names: []string{"nice"}, values: "n"},
		{names: []string{"time"}, values: "fo"},
		{names: []string{"timeout"}, values: "ks", operand: 1},
		{names: []string{"xargs"}, values: "aEIdLnPs"},
		{names: []string{"ionice"}, values: "cnp"},
		{names: []string{"stdbuf"}, values: "ioe"},
		{names: []string{"sudo", "doas"}, values: "ugpChrtU"},
		{names: []string{"taskset", "chrt", "flock", "gosu", "su-exec", "faketime", "setarch"}, operand: 1},
		{names: []string{"xvfb-run"}, values: "efnps"},
		{names: []string{"strace"}, values: "abeEIopPsSuUX"},
		{names: []string{"parallel"}, values: "jSaCN"},
		{names: []string{"watch"}, values: "n"},
		{names: []string{"fakeroot", "eatmydata", "setpriv", "unshare", "numactl", "systemd-run", "bear", "scan-build"}},
		{names: []string{"dbus-run-session", "valgrind", "prlimit", "tini", "dumb-init", "cross-env"}},
		{names: []string{"direnv"}, operand: 2}, // exec DIR
		{names: []string{"command", "builtin", "nohup", "setsid", "chronic", "unbuffer", "caffeinate", "busybox"}},
	}
}

// unwrapped returns the words of the command itself, without assignments, keywords and wrappers.
func (s *starts) unwrapped(words []string, depth int) []string {
	for len(words) > 0 {
		word := words[0]
		if isAssignment(word) {
			s.assigned(word)
			words = words[1:]
			continue
		}
		name := word
		if path.IsAbs(word) {
			name = path.Base(word)
		}
		at := slices.IndexFunc(wrappers(), func(w wrapper) bool { return slices.Contains(w.names, name) })
		if at < 0 {
			break
		}
		s.program(word)
		w, rest := wrappers()[at], words[1:]
		if codes := CodeArgs(words); len(codes) > 0 && codes[0] < len(words) && (name == "env" || name == "flock") {
			if first := firstOperand(words); codes[0] <= first || name == "flock" { // env -S, flock -c
				s.text(words[codes[0]], depth+1)
				return nil
			}
		}
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && len(rest[0]) > 1 {
			option := rest[0]
			rest = rest[1:]
			if option == "--" {
				break
			}
			if name == "command" && strings.ContainsAny(option, "vV") {
				return nil
			}
			long, value, joined := strings.Cut(option, "=")
			if takes := len(option) == 2 && strings.Contains(w.values, option[1:]) || long == "--chdir" && !joined; takes &&
				len(rest) > 0 {
				value, rest = rest[0], rest[1:]
			}
			if long == "--chdir" || name == "env" && option == "-C" {
				s.enter(value)
			}
		}
		words = rest[min(w.operand, len(rest)):]
	}
	if len(words) > 0 && slices.Contains([]string{"for", "case", "select", "function", "in", "esac"}, words[0]) {
		return nil // what follows are words, not commands
	}
	return words
}

// firstOperand returns the index of the first argument that is neither an option nor an assignment.
func firstOperand(words []string) int {
	for i, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !isAssignment(w) {
			return i + 1
		}
	}
	return len(words)
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/.-"+string(hole))
}
