package gates

import (
	"path"
	"strings"

	"sluice/engine"
	"sluice/internal/shells"
)

// maxTurns is how many scripts one after the other are followed.
const maxTurns = 3

// Unguarded are the files that a judge's shell scripts start, and that a step may change without anybody being asked.
type Unguarded struct {
	Where string // the judge: gate G, criterion 1 of S, …
	Files []string
}

// InTurn returns what the scripts of a spec's judges start in turn and is not law, each file once. read returns the
// shell text that a file has for the words of a judge's command, and whether there is such a file in the checkout.
func (l Law) InTurn(spec *engine.Spec, read func(file string, words []string) (script string, exists bool)) (
	out []Unguarded) {
	said := map[string]bool{}
	for _, judge := range judges(spec) {
		of := Unguarded{Where: judge.where}
		argv := judge.command.Words()
		words := strings.Fields(strings.Join(argv, " "))
		files := shells.Starts(argv, nil).Files
		for turn := range maxTurns {
			var next []string
			for _, f := range files {
				script, exists := read(f, words)
				if is, _ := l.Has(f); exists && !is && turn > 0 && !said[f] {
					said[f] = true
					of.Files = append(of.Files, f)
				}
				for _, started := range shells.Script(script).Files {
					started = strings.TrimPrefix(started, "**/")                  // "$(dirname "$0")"/x
					next = append(next, started, path.Join(path.Dir(f), started)) // where it runs is not known
				}
			}
			files = next
		}
		if len(of.Files) > 0 {
			out = append(out, of)
		}
	}
	return out
}
