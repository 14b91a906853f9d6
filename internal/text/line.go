package text

import (
	"fmt"
	"strings"
)

// How many characters of foreign text stand in a line, and in a message of its own.
const (
	lineMost    = 400
	messageMost = 1000
)

// Line is foreign text for a place in a line.
func Line(s string) string { return Clean(s, lineMost) }

// Message is foreign text for a line of its own.
func Message(s string) string { return Clean(s, messageMost) }

// Plural is "1 run", "2 runs".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// JoinMost names a few of many.
func JoinMost(names []string) string {
	const most = 8
	s := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		s += ", …"
	}
	return s
}
