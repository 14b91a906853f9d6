package gates

import (
	"path"
	"slices"
	"strings"

	"sluice/internal/shells"
)

// maxTurn is how many files of a command are looked at for what they start in turn.
const maxTurn = 1000

// source is a command of which the law knows what it starts.
type source struct {
	where string // gate G, criterion 1 of S, …
	words []string
	files []string // from the top of the checkout
}

// Turn is what the files of the law's commands start in turn.
type Turn struct {
	scripts []string    // shell scripts, Makefiles and package.json files: law too
	unknown []string    // why there may be more
	Others  []Unguarded // files of which none is law
}

// Unguarded are the files that a command's scripts start, and that a step may change without anybody being asked.
type Unguarded struct {
	Where string // the command: gate G, criterion 1 of S, …
	Files []string
}

// ReadScript returns the shell text that a file of the checkout has for the words of a command, as [shells.TextOf]
// does. exists reports whether there is such a file.
type ReadScript func(file string, words []string) (script string, exists bool, err error)

// Commands names the law's commands that start files of the checkout: the same name, the same commands.
func (l Law) Commands() string {
	var b strings.Builder
	for _, s := range l.sources {
		b.WriteString(strings.Join(append(slices.Clone(s.files), s.words...), "\x00") + "\n")
	}
	return b.String()
}

// InTurn returns what the files of the law's commands start in turn.
func (l Law) InTurn(read ReadScript) (t Turn, err error) {
	said := map[string]bool{}
	for _, s := range l.sources {
		others := Unguarded{Where: s.where}
		seen := map[string]bool{}
		queue := slices.Clone(s.files)
		for ; len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if seen[name] {
				continue
			}
			if seen[name] = true; len(seen) > maxTurn {
				t.unknown = append(t.unknown, s.where+" starts too many files in turn")
				break
			}
			text, exists, err := read(name, s.words)
			if err != nil {
				return t, err
			}
			is, _ := l.Has(name)
			switch {
			case is || said[name]:
			case text != "" || !exists && path.Ext(name) == ".sh":
				t.scripts = append(t.scripts, name)
			case exists:
				others.Files = append(others.Files, name)
			}
			said[name] = true
			started := shells.Script(text)
			if len(text) > shells.MaxText {
				t.unknown = append(t.unknown, name+": "+started.Unknown)
			}
			for _, f := range started.Files {
				queue = append(append(queue, l.at.anywhere(f)...), path.Join(path.Dir(name), strings.TrimPrefix(f, "**/")))
			}
		}
		if len(others.Files) > 0 {
			t.Others = append(t.Others, others)
		}
	}
	return t, nil
}

// Add makes law what its commands start in turn.
func (l *Law) Add(t Turn) {
	l.programs.put(t.scripts...)
	for _, why := range t.unknown {
		l.doubt(why)
	}
}

// anywhere is Places for a file whose folder may be unknown, as in "$(dirname "$0")"/x.
func (j Bases) anywhere(file string) []string { return j.Places(strings.TrimPrefix(file, "**/")) }
