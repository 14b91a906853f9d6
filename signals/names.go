package signals

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/internal/strictjson"
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
	folded := []rune(strictjson.Fold(name))
	for _, k := range known[:min(len(known), maxNearKnown)] {
		if len(k) > maxNearName || k == "" {
			continue
		}
		d := differences(folded, []rune(strictjson.Fold(k)), best)
		if d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// differences is the edit distance (with swaps of neighbours as one) of a and
// b, or limit if it is not less.
func differences(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return min(above[len(b)], limit)
}

// clip shows a foreign name in a message.
func clip(s string) string { return fmt.Sprintf("%.60q", s) }
