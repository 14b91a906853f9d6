package host

import (
	"strings"
	"unicode"

	"sluice/internal/console"
	"sluice/internal/show"
)

// lastLine returns the last line with text in this part of an output, or was if there is none.
func lastLine(con *console.Console, dir, end, was string) string {
	plain := *con
	plain.Colour = false
	say := show.Sayer(&plain, dir)
	last := was
	for line := range strings.Lines(end) {
		for _, s := range say(strings.TrimRight(line, "\n")) {
			if s = strings.TrimSpace(s); hasWords(s) {
				last = s
			}
		}
	}
	return last
}

// hasWords reports whether a line says something: a fence, a brace or a rule does not.
func hasWords(s string) bool {
	return !strings.HasPrefix(s, "```") &&
		strings.ContainsFunc(s, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
}
