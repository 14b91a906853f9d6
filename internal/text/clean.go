package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of cleaning: marks are accents and the like that sit on the letter
// before; a tower of them covers the lines around it.
const (
	maxMarksInRow   = 4
	maxEmptyLines   = 1
	bytesPerRuneMax = 16 // how much raw text is looked at for each character kept
	minRawBytes     = 4096
)

// Clean makes foreign text safe to show as one line on a terminal, in a log or
// in a notice: at most max characters, all of them printable. Escape sequences
// (ANSI: colours, titles, cursor moves, links) go as a whole; control
// characters, marks that turn the direction of writing, invisible and private
// characters go; every run of spaces, of other characters that only take room,
// and of line breaks becomes one space; bytes that are no UTF-8 become U+FFFD.
// Text that is cut ends in an ellipsis.
//
// Cleaning cleaned text changes nothing.
func Clean(s string, max int) string { return clean(s, max, false) }

// CleanLines is Clean for text of several lines: line breaks stay, at most one
// empty line in a row.
func CleanLines(s string, max int) string { return clean(s, max, true) }

func clean(s string, max int, lines bool) string {
	if max <= 0 {
		return ""
	}
	if len(s) <= max && isClean(s) {
		return s
	}
	// The raw text is bounded too, so that a flood costs nothing.
	cut := false
	if raw := max*bytesPerRuneMax + minRawBytes; len(s) > raw {
		s, cut = s[:raw], true
		for i := 0; i < utf8.UTFMax && len(s) > 0; i++ {
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	c := cleaner{lines: lines}
	for i := 0; i < len(s); {
		if n := EscapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		c.take(r)
	}
	out := c.out.String()
	if !cut && utf8.RuneCountInString(out) <= max {
		return out
	}
	return shorten(out, max)
}

// IsPlain reports whether r is printable ASCII or a sign of our own screens. Each takes one cell of a
// terminal, and none joins its neighbours.
func IsPlain(r rune) bool {
	switch r {
	case '·', '…', '›', '▸', '→', '‖', '✓', '✗', '–', '↷', '─', '│', '└', '├':
		return true
	}
	return r >= ' ' && r <= '~'
}

// isClean reports whether s has only plain characters with single spaces, as most text.
func isClean(s string) bool {
	space := true
	for _, r := range s {
		if !IsPlain(r) || r == ' ' && space {
			return false
		}
		space = r == ' '
	}
	return s == "" || !space
}

// shorten cuts clean text to max characters, the last of them an ellipsis.
func shorten(s string, max int) string {
	n := 0
	for i := range s {
		if n == max-1 {
			s = s[:i]
			break
		}
		n++
	}
	return strings.TrimRight(s, " \n") + "…"
}

// cleaner builds clean text rune by rune. Spaces and breaks are held back until
// something follows, so that none leads, trails or doubles.
type cleaner struct {
	out    strings.Builder
	lines  bool
	space  bool
	breaks int
	marks  int
}

func (c *cleaner) take(r rune) {
	switch {
	case c.lines && (r == '\n' || r == '\u2028' || r == '\u2029'):
		c.breaks++
		c.space = false
		c.marks = 0
	case r == ' ' || unicode.IsSpace(r) || blank(r): // rows of it would place what follows
		c.space = true
		c.marks = 0
	case unicode.Is(unicode.M, r):
		c.marks++
		if c.marks <= maxMarksInRow {
			c.put(r)
		}
	case unicode.IsPrint(r):
		c.marks = 0
		c.put(r)
	}
}

func (c *cleaner) put(r rune) {
	if c.out.Len() > 0 {
		if c.breaks > 0 {
			c.out.WriteString(strings.Repeat("\n", min(c.breaks, maxEmptyLines+1)))
		} else if c.space {
			c.out.WriteByte(' ')
		}
	}
	c.space, c.breaks = false, 0
	c.out.WriteRune(r)
}

// EscapeLen is the length of the terminal escape sequence that s, which is not empty, begins with, or 0.
// A sequence that takes text up to a terminator and has none counts only as its
// introducer: text may not vanish behind an escape that no terminal would end.
func EscapeLen(s string) int {
	kind, n := introducer(s)
	switch kind {
	case 0:
		return 0
	case '[': // parameters, intermediates, one final byte
		for i := n; i < len(s); i++ {
			if b := s[i]; b >= 0x40 && b <= 0x7e {
				return i + 1
			} else if b < 0x20 || b > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // a string up to BEL or ST
		for i := n; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case strings.HasPrefix(s[i:], "\x1b\\"), strings.HasPrefix(s[i:], "\u009c"):
				return i + 2
			case s[i] == 0x1b, s[i] == '\n': // given up, as terminals do at an escape
				return n
			}
		}
		return n
	}
	// Intermediates and a final byte, as in the choice of a character set.
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
		n++
	}
	return n
}

// introducer returns which family of sequences s begins ('[' for CSI, ']' for OSC
// and so on, 1 for the short ones, 0 for none) and how long the introducer is.
// Both spellings count: ESC with a letter, and the one control character
// U+0080..U+009F that means the same.
func introducer(s string) (kind byte, n int) {
	switch {
	case s[0] == 0x1b:
		if len(s) > 1 && strings.IndexByte("[]PX^_", s[1]) >= 0 {
			return s[1], 2
		}
		return 1, 1
	case len(s) > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f:
		final := s[1] - 0x40
		if strings.IndexByte("[]PX^_", final) >= 0 {
			return final, 2
		}
	}
	return 0, 0
}
