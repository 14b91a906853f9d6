package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reveal makes foreign text safe to read as a block. Terminal escape sequences and control characters go, line ends
// become "\n", bytes that are no UTF-8 become U+FFFD. Characters that hide or turn text (direction marks, zero-width
// ones, tags) are shown as <U+202E>: a reviewer has to see that they were there. Tabs and line breaks stay. Revealing
// revealed text changes nothing.
func Reveal(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		if n := EscapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if Hidden(r) {
			i += showHidden(&out, s[i:])
			continue
		}
		i += size
		switch {
		case r == '\r':
			if i >= len(s) || s[i] != '\n' {
				out.WriteByte('\n')
			}
		case r == '\u0085' || r == '\u2028' || r == '\u2029':
			out.WriteByte('\n')
		case r == '\n' || r == '\t' || joins(r) || unicode.IsPrint(r):
			out.WriteRune(r)
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// Controls shows as <U+001B> what Reveal and Clean drop, such as control characters and the soft hyphen, but for tabs
// and line breaks: for text that somebody judges, such as a file. With an escape sequence they drop what stands in it
// too, which a program may run.
func Controls(s string) string { return spelled(s, dropped) }

// Seen is Controls for text that a person compares with other text, such as a diff: all that Inkless tells is shown.
func Seen(s string) string {
	return spelled(s, func(r rune) bool { return dropped(r) || Inkless(r) && !Hidden(r) && !breaks(r) })
}

// Name is Seen for the name of a file, on one line: what a reader does not see may tell it from another file.
func Name(s string) string { return spelled(s, Inkless) }

// spelled shows the characters that odd tells by their numbers.
func spelled(s string, odd func(rune) bool) string {
	if strings.IndexFunc(s, odd) < 0 {
		return s
	}
	var out strings.Builder
	for i, r := range s {
		if odd(r) {
			fmt.Fprintf(&out, "<U+%04X>", r)
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		out.WriteString(s[i : i+size])
	}
	return out.String()
}

func dropped(r rune) bool {
	return unicode.IsControl(r) && !breaks(r) || !unicode.IsPrint(r) && !unicode.IsSpace(r) && !joins(r) && !Hidden(r)
}

// breaks reports whether r is a tab or a part of a line end.
func breaks(r rune) bool { return r == '\t' || r == '\n' || r == '\r' }

func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// Inkless reports whether a reader does not see a character, or takes it for a space. Joiners count: within a name of a
// program they tell it from another one.
func Inkless(r rune) bool {
	switch r {
	case '\u034f', '\u17b4', '\u17b5':
		return true
	}
	return Hidden(r) || r >= 0xfe00 && r <= 0xfe0e || !unicode.IsPrint(r)
}

// Hidden reports whether a reader does not see a character that a program, or a model, reads. The two
// joiners, the soft hyphen and the byte order mark do not count: scripts and emoji need them.
func Hidden(r rune) bool {
	switch {
	case joins(r) || r == '\u00ad' || r == '\ufeff':
		return false
	case r >= 0xe0100 && r <= 0xe01ef: // variation selectors, in which whole texts have been smuggled
		return true
	}
	return blank(r) || unicode.Is(unicode.Cf, r)
}

// blank reports whether r is a letter or a sign that shows nothing but room: of braille, of Hangul, a note
// without a head.
func blank(r rune) bool {
	switch r {
	case '\u2800', '\u3164', '\uffa0', '\u115f', '\u1160', '\U0001d159':
		return true
	}
	return false
}

// showHidden writes what stands for the run of hidden characters that s begins with, and returns its length.
func showHidden(out *strings.Builder, s string) int {
	first, n, end := rune(0), 0, len(s)
	for i, r := range s {
		if !Hidden(r) {
			end = i
			break
		}
		if n == 0 {
			first = r
		}
		n++
	}
	if n == 1 {
		fmt.Fprintf(out, "<U+%04X>", first)
	} else {
		fmt.Fprintf(out, "<U+%04X and %d more hidden characters>", first, n-1)
	}
	return end
}
