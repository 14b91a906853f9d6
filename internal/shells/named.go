package shells

import (
	"path"
	"slices"
	"strings"
)

// looks are programs whose arguments are texts, or the work that is looked at: these decide nothing.
func looks() []string {
	return []string{"test", "[", "[[", "echo", "printf", "ls", "stat", "true", "false", ":", "cat", "head", "tail", "wc",
		"grep", "egrep", "fgrep", "rg"}
}

// utilities are other programs that start none of their arguments.
func utilities() []string {
	return []string{"awk", "cmp", "comm", "cp", "curl", "cut", "diff", "gawk", "git", "hash", "jq", "mkdir", "mv", "rm",
		"sed", "sort", "tee", "touch", "tr", "type", "uniq", "wget", "which"}
}

// names adds what a command may read: its arguments, values of its options, and its input.
func (s *starts) names(l line) {
	if len(l.words) == 0 || slices.Contains(looks(), path.Base(l.words[0])) {
		return
	}
	for _, w := range append(l.words[1:len(l.words):len(l.words)], l.from) {
		_, value, _ := strings.Cut(w, "=")
		if len(w) > 2 && w[0] == '-' && w[1] != '-' {
			s.name(w[2:]) // -ffile
		}
		s.name(w)
		s.name(value)
	}
}

func (s *starts) name(name string) {
	switch {
	case name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "~") || strings.ContainsRune(name, hole):
	case len(s.Named) >= maxNamed:
		s.unknown("more than %d arguments", maxNamed)
	case path.IsAbs(name):
		s.Named = append(s.Named, path.Clean(name))
	default:
		for _, dir := range s.dirs {
			s.Named = append(s.Named, path.Join(dir, name))
		}
	}
}

// maxNamed limits the arguments that may be files.
const maxNamed = 5000

// behind looks for a known command among the arguments of a program that may start one: xvfb-run make. What that would
// run and cannot be told counts for nothing, as it may be no command.
func (s *starts) behind(base string, args []string, depth int) {
	if s.guess || slices.Contains(looks(), base) || slices.Contains(utilities(), base) {
		return
	}
	was := s.Unknown
	s.guess = true
	for i, a := range args {
		name := strings.TrimSuffix(path.Base(a), ".exe")
		_, runs := interpreterOf(name, strings.TrimRight(name, "0123456789."))
		if _, known := toolOf(name); known || runs {
			s.command(line{words: args[i:]}, depth+1)
		}
	}
	s.guess, s.Unknown = false, was
}
