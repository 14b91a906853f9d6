package text

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// How many characters of foreign text stand in a line, and in a message of its own.
const (
	lineMost    = 500
	messageMost = 1000
)

// Line is foreign text for a place in a line. Of a long text it keeps the beginning and the end: the output
// of a failed command says at its end what was wrong.
func Line(s string) string { return ends(s, lineMost, Clean) }

// Ends is CleanLines that keeps the beginning and the end of a long text.
func Ends(s string, most int) string { return ends(s, most, CleanLines) }

func ends(s string, most int, clean func(string, int) string) string {
	const trimmed = 8 // more than is trimmed where a text is cut
	if whole := clean(s, most+trimmed); utf8.RuneCountInString(whole) <= most {
		return whole
	}
	last := s[runeStart(s, max(len(s)-most*utf8.UTFMax, 0)):]
	end := []rune(clean(last, len(last)))
	head := most * 3 / 5
	end = end[max(len(end)-(most-head-1), 0):]
	return clean(s, head) + " " + strings.TrimSpace(string(end))
}

// Message is foreign text for a line of its own.
func Message(s string) string { return Clean(s, messageMost) }

// Span is a time as people write it: 2h, and not 2h0m0s.
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Typed is a word, such as a path, as a person types it in a shell. Bash, zsh and ksh read what is written for control
// characters.
func Typed(word string) string {
	plain := func(c rune) bool {
		return strings.ContainsRune("/.-_", c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	switch {
	case word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }):
		return word
	case !strings.ContainsFunc(word, unicode.IsControl):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, c := range []byte(word) {
		if c >= ' ' && c != '\'' && c != '\\' && c != 0x7f {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "\\%03o", c)
	}
	return "$'" + b.String() + "'"
}

// Plural is "1 run", "2 runs".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// MeantOr is the advice about a name that is not known: the nearest of the known ones, with what precedes it on the
// command line, or else the other advice.
func MeantOr(otherwise, before, name string, known []string) string {
	if near := Meant(name, known); near != "" {
		return "did you mean " + before + near + "?"
	}
	return otherwise
}

// DidYouMean is the end of a message that names the nearest of the known names; "" if none is near.
func DidYouMean(name string, known []string) string {
	if near := Meant(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// More returns how many more there are than the one that is named; "" if there are none.
func More(n int, one string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %s more)", Plural(n, one))
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

// Unheld is the mark of what no sandbox holds; of what one holds there is none.
const Unheld = "trust: file (not held)"

// GoneOnCount counts what is not named.
func GoneOnCount(n int) string { return Plural(n, "round") + " that a gate did not pass went on" }

// Unshipped says with how many files a criterion was judged that are in no commit.
func Unshipped(n int) string {
	if n == 1 {
		return "with 1 file that does not ship"
	}
	return "with " + Plural(n, "file") + " that do not ship"
}

// Title is an id with its name, where it has one of its own.
func Title(id, name string) string {
	if name == "" || name == id {
		return id
	}
	return id + " " + Line(name)
}

// CutLast cuts a text at the last separator: in FILE:LINE the file may have colons. Without one both parts are empty.
func CutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
