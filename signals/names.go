package signals

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/internal/strictjson"
	"sluice/internal/typo"
)

const (
	maxID        = 64
	doneEnding   = "-done.json"
	maxNearName  = 64   // names longer than this are compared with nothing
	maxNearKnown = 5000 // names compared with
	nearPerRunes = 3    // one difference for so many characters, none for fewer
	mostNear     = 3    // differences at most
)

// ValidID tells whether s can be the id of a workflow, step, gate, route or run:
// [A-Za-z0-9][A-Za-z0-9._-]{0,63}, no "..". So it is also one plain path element
// on every system, and never an option.
func ValidID(s string) bool {
	if s == "" || len(s) > maxID || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case i > 0 && (b == '.' || b == '_' || b == '-'):
		default:
			return false
		}
	}
	return true
}

// maxRun bounds a run's id: a child run's is made of those of its parent and its task.
const maxRun = 240

// ValidRun says that s can be a run's id: it is a name of a folder.
func ValidRun(s string) bool {
	if s == "" || len(s) > maxRun || strings.Contains(s, "..") {
		return false
	}
	for rest := s; rest != ""; {
		part := rest[:min(len(rest), maxID)]
		if !ValidID("a" + part[:min(len(part), maxID-1)]) {
			return false
		}
		rest = rest[min(len(part), maxID-1):]
	}
	return ValidID(s[:1])
}

// StepOf is the step whose sentinel has this file name: "<step-id>-done.json".
func StepOf(name string) (string, bool) {
	step, ok := strings.CutSuffix(name, doneEnding)
	if !ok || !ValidID(step) {
		return "", false
	}
	return step, true
}

// Nearest is the known name that name was likely meant to be: the one with the
// fewest letters wrong, missing, too many or swapped, at most one for each
// three characters and three in all; "" if none is so near. A name that differs
// in case only is nearest of all. Of several the first counts.
func Nearest(name string, known []string) string {
	if name == "" || len(name) > maxNearName || !utf8.ValidString(name) {
		return ""
	}
	best, nearest := min(utf8.RuneCountInString(name)/nearPerRunes, mostNear)+1, ""
	folded := strictjson.Fold(name)
	for _, k := range known[:min(len(known), maxNearKnown)] {
		if len(k) > maxNearName || k == "" {
			continue
		}
		d := typo.Distance(folded, strictjson.Fold(k), best)
		if d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// clip shows a foreign name in a message.
func clip(s string) string { return fmt.Sprintf("%.60q", s) }
