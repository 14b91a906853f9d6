package gates

import (
	"maps"
	"path"
	"slices"
	"strings"

	"sluice/internal/shells"
)

// maxTurn is how many files of one command are read for what they start in turn.
const maxTurn = 1000

// source is a command with the files of the checkout that it starts.
type source struct {
	where string // gate G, criterion 1 of S, …
	words []string
	files []string // from the top of the checkout
	below bool     // it runs scripts of packages, too
}

// Turn is what the files of the law's commands start in turn.
type Turn struct {
	scripts []string         // from the top of the checkout: shell scripts, and others that a shell runs
	folders []string         // from there: a shell runs scripts in them, or may
	started []shells.Started // by those
	unknown []string         // why there may be more
	Others  []Unguarded      // other files, and scripts that are the work: none of them is law
}

// Unguarded are the files that a command's scripts start, and that a step may change without anybody being asked.
type Unguarded struct {
	Where string // the command: gate G, criterion 1 of S, …
	Files []string
}

// ReadFile returns the first [shells.MaxFile] bytes of a file of the checkout, and whether it is there.
type ReadFile func(file string) (text string, exists bool, err error)

// Commands returns a key of the commands and outputs that InTurn reads; "" if no command starts a file of the checkout.
func (l Law) Commands() string {
	if len(l.sources) == 0 {
		return ""
	}
	all := slices.Sorted(maps.Keys(l.work))
	for _, s := range l.sources {
		all = append(append(append(all, "\n"), s.files...), s.words...)
	}
	return strings.Join(all, "\x00")
}

// ofPackages reports whether a command runs scripts of packages in the folders below, as npm does in workspaces.
func ofPackages(s shells.Started) bool { return slices.Contains(s.Below, ".npmrc") }

// InTurn adds to the law what the files of its commands start in turn, if a shell runs it or a tool works by it. It
// returns this and the other files. packages are the files package.json of the checkout.
func (l *Law) InTurn(read ReadFile, packages ...string) (t Turn, err error) {
	w := walk{law: l, read: read, packages: packages, files: map[string]*file{}, vars: map[string]string{}}
	others := make([]Unguarded, len(l.sources))
	for i, s := range l.sources {
		others[i].Where = s.where
		if others[i].Files, err = w.from(s); err != nil {
			return t, err
		}
	}
	t = w.Turn
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

// walk follows what commands start.
type walk struct {
	Turn
	law  *Law
	read ReadFile

	packages []string

	files map[string]*file
	vars  map[string]string // of the Makefiles and justfiles among them
}

type file struct {
	text   string
	exists bool
	known  string // what a shell runs of it, and the turn has
}

// from follows a command, and returns the files that no shell runs.
func (w *walk) from(s source) (others []string, err error) {
	words := map[string]bool{}
	for _, word := range s.words {
		words[word] = true
	}
	looks := 0
	for known := -1; known < len(words)+len(w.files); { // until no file names one more target or variable
		known = len(words) + len(w.files)
		others = nil
		seen := map[string]bool{}
		queue := slices.Clone(s.files)
		if s.below {
			queue = append(queue, w.packages...)
		}
		for ; len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if seen[name] {
				continue
			}
			seen[name] = true
			if looks++; looks > maxTurn {
				w.unknown = append(w.unknown, s.where+" starts too many files in turn")
				return others, nil
			}
			text, exists, err := w.open(name, words)
			switch own := slices.Contains(s.files, name); { // what the command itself names is no work
			case err != nil:
				return nil, err
			case text != "" && (own || !w.law.isWork(name)):
				queue = append(queue, w.follow(name, text, words)...)
			case exists:
				others = append(others, name)
			}
		}
	}
	return others, nil
}

// open returns what a shell runs of a file, and whether the file exists.
func (w *walk) open(name string, words map[string]bool) (string, bool, error) {
	f := w.files[name]
	if f == nil {
		text, exists, err := w.read(name)
		if err != nil {
			return "", false, err
		}
		f = &file{text: text, exists: exists}
		w.files[name] = f
		for of, value := range shells.Assigned(name, text) {
			w.vars[of] = strings.TrimPrefix(w.vars[of]+"; "+value, "; ")
		}
	}
	return shells.TextOf(name, f.text, words, w.vars), f.exists, nil
}

// follow adds what a shell runs of a file to the turn, and its words to the command's. It returns the started files.
// The folder where the text runs is unknown, so each may be beside the file too.
func (w *walk) follow(name, text string, words map[string]bool) (files []string) {
	started := shells.Script(text)
	if f := w.files[name]; f.known != text { // several commands may start it
		f.known = text
		w.scripts, w.started = append(w.scripts, name), append(w.started, started)
		if started.Bound != "" {
			w.unknown = append(w.unknown, name+": "+started.Bound)
		}
	}
	if ofPackages(started) {
		files = slices.Clone(w.packages)
	}
	for _, word := range shells.Words(text) {
		if !strings.Contains(word, "$") {
			words[word] = true
		}
	}
	for _, f := range started.Files {
		at := w.law.at.beside(name, f)
		if strings.HasSuffix(f, "**") {
			w.folders = append(w.folders, at...)
		} else {
			files = append(files, at...)
		}
	}
	for _, dir := range started.Folders {
		w.folders = append(w.folders, w.law.at.beside(name, dir)...)
	}
	return files
}

// Add adds what [Law.InTurn] returned for the same commands.
func (l *Law) Add(t Turn) {
	l.programs.put(t.scripts...)
	for _, dir := range t.folders {
		l.folders[path.Clean(strings.TrimSuffix(dir, "**"))] = true
	}
	for _, s := range t.started {
		l.include(s, s.Settings)
	}
	for _, why := range t.unknown {
		l.doubt(why)
	}
}

// isWork reports whether a script started in turn is judged rather than judging: an output of a step, or a test by its
// name.
func (l Law) isWork(name string) bool {
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	return l.work[name] || strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test") ||
		strings.HasSuffix(base, ".test")
}

// runs reports whether a file may be a shell script in a folder whose scripts are started in turn.
func (l Law) runs(file string) bool {
	if !slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".ksh"}, path.Ext(file)) || l.isWork(file) {
		return false
	}
	dir := file // itself: echo ci/a.sh | xargs sh
	if path.Ext(file) == "" {
		dir = path.Dir(file)
	}
	for ; dir != "." && !l.folders[dir]; dir = path.Dir(dir) {
	}
	return l.folders[dir]
}

// beside returns where a file is that a script names.
func (j Bases) beside(script, file string) []string {
	return append(j.anywhere(file), path.Join(path.Dir(script), strings.TrimPrefix(file, "**/")))
}

// anywhere is Places for a file whose folder may be unknown, as in "$(dirname "$0")"/x.
func (j Bases) anywhere(file string) []string { return j.Places(strings.TrimPrefix(file, "**/")) }
