// Package shells reads commands without running them: which arguments are code ([CodeArgs]), and which files of a repo
// a command starts ([Starts], [TextOf]). In doubt it returns more files, or says that a command cannot be known
// (Started.Unknown). It is pure.
package shells

import (
	"path"
	"slices"
	"strings"
)

// interpreter is a program that runs an argument as code, and how it takes it.
type interpreter struct {
	names    []string
	letters  string   // short options before such a text: -c, also within -lc
	values   string   // short options that take a value, joined or as the next argument
	long     []string // long options before such a text, also joined by =
	attached bool     // the text may be joined to the short option
	operand  bool     // the text is the first operand after the short option (a shell), else the next argument
	ends     string   // short options after which all else is the program's
	files    []string // files that it reads first, in the folder that it runs in
	suffixes []string // what it adds to a file's name without an ending
	through  bool     // an operand before the option does not end the options (su NAME -c TEXT)
}

// interpreters are the programs that run an argument as code.
func interpreters() []interpreter {
	return []interpreter{
		{names: []string{"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash"}, letters: "c",
			values: "oO", long: []string{"--command"}, operand: true},
		{names: []string{"su", "runuser", "script", "flock", "sg"}, letters: "c", long: []string{"--command"},
			attached: true, through: true},
		{names: []string{"env"}, letters: "S", values: "uC", long: []string{"--split-string"}, attached: true, through: true},
		{names: []string{"python", "pypy"}, letters: "c", values: "WX", ends: "m", attached: true,
			suffixes: []string{"/__main__.py"}},
		{names: []string{"perl"}, letters: "eE", values: "IMmFCDx", attached: true, suffixes: []string{".pm"}},
		{names: []string{"ruby"}, letters: "e", values: "IrCEF", attached: true, suffixes: []string{".rb"}},
		{names: []string{"node", "nodejs", "bun", "deno", "tsx", "ts-node"}, letters: "ep", values: "rC",
			long: []string{"--eval", "--print"}, attached: true,
			suffixes: []string{".js", ".cjs", ".mjs", ".json", "/index.js", "/package.json"}},
		{names: []string{"php"}, letters: "rBRE", values: "dcz", ends: "f", long: []string{"--run"}, attached: true},
		{names: []string{"lua", "osascript"}, letters: "e", values: "l", attached: true},
		{names: []string{"Rscript"}, letters: "e", files: []string{".Rprofile", ".Renviron"}},
		{names: []string{"octave"}, files: []string{".octaverc"}},
		{names: []string{"julia", "elixir", "groovy", "raku"}, letters: "e", long: []string{"--eval"}},
		{names: []string{"tclsh", "expect", "racket", "guile", "escript"}},
		{names: []string{"pwsh", "powershell"}, long: []string{"-c", "-Command", "-command", "--command"}, through: true},
	}
}

// maxArgs is more than any command's arguments.
const maxArgs = 1 << 30

// CodeArgs returns the indexes of the arguments that a program runs as code: the text of `sh -c`, also after env,
// timeout and the like, and of python -c, node -e, perl -e and ruby -e. A program whose name is a value may be a shell.
func CodeArgs(argv []string) []int {
	var out []int
	for i, arg := range argv {
		name := strings.TrimSuffix(path.Base(arg), ".exe")
		if i == 0 && strings.Contains(arg, "${{") {
			name = "sh"
		}
		for _, in := range interpreters() {
			if slices.Contains(in.names, name) || slices.Contains(in.names, strings.TrimRight(name, "0123456789.")) {
				out = append(out, in.code(argv, i+1)...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// code returns the indexes of code among the arguments from i on.
func (in interpreter) code(argv []string, i int) (out []int) {
	waits := false // the option was there; the next operand is the text
	for ; i < len(argv); i++ {
		arg := argv[i]
		dash := strings.HasPrefix(arg, "-") && arg != "-" || in.operand && strings.HasPrefix(arg, "+")
		switch name, _, joined := strings.Cut(arg, "="); {
		case waits && !dash:
			return append(out, i)
		case slices.Contains(in.long, name) && joined:
			out = append(out, i)
		case slices.Contains(in.long, name):
			i++
			out = append(out, i)
		case arg == "--" || !dash && !in.through:
			if waits && i+1 < len(argv) {
				out = append(out, i+1)
			}
			return inRange(out, len(argv))
		case dash && !strings.HasPrefix(arg, "--"):
			at, next := in.cluster(arg, i)
			if in.operand {
				waits = waits || at >= 0
			} else if at >= 0 {
				out = append(out, at)
			}
			i = next
		case in.operand && (arg == "--rcfile" || arg == "--init-file"):
			i++
		}
	}
	return inRange(out, len(argv))
}

// inRange drops an index after the last argument.
func inRange(out []int, n int) []int {
	return slices.DeleteFunc(out, func(i int) bool { return i >= n })
}

// cluster reads joined short options. at is the index of the code, -1 for none; next is the last argument that they
// take.
func (in interpreter) cluster(arg string, i int) (at, next int) {
	for k, c := range arg[1:] {
		rest := arg[1+k+1:]
		switch {
		case strings.ContainsRune(in.letters, c) && in.operand:
			at, next = i, i
			if o := strings.IndexAny(rest, in.values); o >= 0 {
				next = i + 1
			}
			return at, next
		case strings.ContainsRune(in.letters, c) && rest != "" && in.attached && !strings.ContainsAny(rest[:1], in.letters):
			return i, i
		case strings.ContainsRune(in.letters, c) && rest == "":
			return i + 1, i + 1
		case strings.ContainsRune(in.ends, c):
			return -1, maxArgs
		case strings.ContainsRune(in.values, c) && rest == "":
			return -1, i + 1
		case strings.ContainsRune(in.values, c) && !in.operand:
			return -1, i
		case strings.ContainsRune(in.values, c):
			return -1, i + 1
		}
	}
	return -1, i
}
