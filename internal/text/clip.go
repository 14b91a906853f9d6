package text

import (
	"strings"
	"unicode/utf8"
)

// Clip returns at most most bytes of s, as whole characters; where it cuts, the text ends in "…".
func Clip(s string, most int) string { return Cut(s, most, "…") }

// Cut is Clip with another mark for what was cut; "" = none. The mark is within the bytes.
func Cut(s string, most int, mark string) string {
	if len(mark) > most {
		mark = ""
	}
	if len(s) > most {
		s = s[:runeStart(s, max(most-len(mark), 0))] + mark
	}
	return strings.ToValidUTF8(s, "")
}

// runeStart returns the start of the character that byte at of s belongs to.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
