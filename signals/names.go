package signals

import (
	"fmt"
	"strings"
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

// clip shows a foreign name in a message.
func clip(s string) string { return fmt.Sprintf("%.60q", s) }
