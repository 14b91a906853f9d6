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
	scripts []string         // from the top of the checkout: shell scripts, and others that a shell runs
	started []shells.Started // by those
	unknown []string         // why there may be more
	Others  []Unguarded      // files of which none is law
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

// InTurn adds to the law what the files of its commands start in turn, if a shell runs it or a tool goes by it, and
// returns it with the other files.
func (l *Law) InTurn(read ReadScript) (t Turn, err error) {
	var others []Unguarded
	for _, s := range l.sources {
		of := Unguarded{Where: s.where}
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
			if text == "" && exists {
				of.Files = append(of.Files, name)
			} else if text != "" || path.Ext(name) == ".sh" {
				t.scripts = append(t.scripts, name)
			}
			started := shells.Script(text)
			if len(text) > shells.MaxText {
				t.unknown = append(t.unknown, name+": "+started.Unknown)
			}
			for _, f := range started.Files {
				queue = append(append(queue, l.at.anywhere(f)...), path.Join(path.Dir(name), strings.TrimPrefix(f, "**/")))
			}
			t.started = append(t.started, started)
		}
		others = append(others, of)
	}
	l.Add(t)
	said := map[string]bool{}
	for _, of := range others {
		of.Files = slices.DeleteFunc(of.Files, func(name string) bool {
			is, _ := l.Has(name)
			is, said[name] = is || said[name], true
			return is
		})
		if len(of.Files) > 0 {
			t.Others = append(t.Others, of)
		}
	}
	return t, nil
}

// Add adds what [Law.InTurn] returned for the same commands.
func (l *Law) Add(t Turn) {
	l.programs.put(t.scripts...)
	for _, s := range t.started {
		l.include(s, s.Settings)
	}
	for _, why := range t.unknown {
		l.doubt(why)
	}
}

// anywhere is Places for a file whose folder may be unknown, as in "$(dirname "$0")"/x.
func (j Bases) anywhere(file string) []string { return j.Places(strings.TrimPrefix(file, "**/")) }
