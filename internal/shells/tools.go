package shells

import (
	"path"
	"slices"
	"strings"
)

// tool is a well-known program that works by files of the repo, and which.
type tool struct {
	names []string
	files []string // in the folder that it runs in; * in a name is any text
	below bool     // it also finds them by itself in the folders below
	file  []string // options that name another such file
	dir   []string // options that name another folder
	run   []string // subcommands before a command that it starts; "" = the command comes first
	as    string   // the program that reads that command
	locks []string // files that say from where it installs what files name
	paths []string // subcommands before a file or folder that it runs
	named []string // options after paths that name a part of the project, which it runs

	scripts bool // its arguments may be scripts
}

func toolOf(name string) (tool, bool) {
	for _, t := range slices.Concat(tools(), pythonTools(), builders(), linters(), scanners(), webTools(),
		agentPrograms()) {
		if slices.Contains(t.names, name) {
			return t, true
		}
	}
	return tool{}, false
}

// tool adds the files by which a well-known tool works, and the command that it starts.
func (s *starts) tool(t tool, args []string, depth int) {
	outer := slices.Clone(s.dirs)
	for i, a := range args {
		s.option(t, a, args[i+1:])
	}
	files := t.files
	if len(args) == 0 || slices.ContainsFunc(args, installs) {
		files = slices.Concat(files, t.locks)
	}
	for _, f := range files {
		if t.below {
			s.below(f)
		}
		switch s.setting(f); f {
		case "package.json":
			s.below(nodeModules)
		case "vendor/modules.txt": // go compares nothing else there with go.sum
			s.file("vendor/**")
		}
	}
	if len(args) > 0 && slices.Contains(t.run, "") {
		s.behind(t, args, depth)
		args = nil
	}
	for i, a := range args {
		switch {
		case slices.Contains(t.run, a):
			s.behind(t, args[i+1:], depth)
		case slices.Contains(t.paths, a):
			s.sources(t, args[i+1:])
		case i == 0 && slices.Contains(t.paths, "") && strings.ContainsAny(a, "/."+string(hole)):
			s.sources(t, args)
		default:
			continue
		}
		break
	}
	if t.scripts {
		s.scripts(args)
	}
	s.dirs = outer
}

// installs reports whether an argument has a package manager install what its lock file names. Some do so without any.
func installs(arg string) bool {
	return slices.Contains([]string{"install", "i", "ci", "clean-install", "install-test", "it", "cit", "sync", "update"},
		arg)
}

// scripts adds the arguments of an unknown program that may be its scripts, and those within an argument (hyperfine
// 'sh a.sh'). An unknown one of them asks nobody.
func (s *starts) scripts(args []string) {
	for _, a := range args {
		if _, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") {
			a = value
		}
		for _, w := range Words(a) {
			if strings.ContainsRune(w, hole) || strings.HasPrefix(w, "-") {
				continue
			}
			if isScript(w) || strings.Contains(w, "/") && path.Ext(w) == "" {
				s.file(w)
			}
		}
	}
}

// option adds the file that an option of a tool names.
func (s *starts) option(t tool, a string, rest []string) {
	option, value, joined := strings.Cut(a, "=")
	if !joined && len(rest) > 0 {
		value = rest[0]
	}
	if known := slices.Contains(t.dir, option) || slices.Contains(t.file, option); !known &&
		len(a) > 2 && a[0] == '-' && a[1] != '-' { // -Cdir
		if option = a[:2]; !joined {
			value = a[2:]
		}
	}
	switch {
	case value == "":
	case slices.Contains(t.dir, option):
		s.enter(value)
	case slices.Contains(t.file, option):
		s.setting(value)
	}
}

// behind adds the command that a tool starts.
func (s *starts) behind(t tool, args []string, depth int) {
	for _, at := range operands(args) {
		words := args[at:]
		if strings.ContainsAny(words[0], " \t\n") { // nix-shell --run 'sh a.sh'
			s.text(words[0], depth+1)
			continue
		}
		if t.as != "" {
			if at > 0 && args[at-1] == "-m" {
				words = args[at-1:]
			}
			words = append([]string{t.as}, words...)
		}
		s.command(line{words: words}, depth+1)
	}
}

// sources adds the file, folder or part of the project that a tool runs.
func (s *starts) sources(t tool, args []string) {
	for _, at := range operands(args) {
		switch a := args[at]; {
		case a == ".":
			s.unknown("go run . runs every file of the folder")
		case at > 0 && slices.Contains(t.named, args[at-1]):
			s.file("**/" + a + "/**")
			s.file("**/" + a + ".rs")
		case strings.ContainsAny(a, "/."+string(hole)):
			s.file(a)
			s.folder(a)
			if slices.ContainsFunc(t.files, func(f string) bool { is, _ := path.Match(f, path.Base(a)); return is }) {
				s.folder(path.Dir(a))
			}
		}
	}
}

// operands returns the indexes of possible operands: one after an option may be its value.
func operands(args []string) (out []int) {
	for i, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if len(out) > 0 && strings.ContainsRune(a, hole) {
			break
		}
		if out = append(out, i); i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=") {
			break
		}
	}
	return out
}
