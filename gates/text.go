package gates

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minFence       = 4   // backticks of a data block's fence, at the least
	maxTickRun     = 100 // backticks in a row that a data block keeps; more are cut, so that fences stay short
	maxLabel       = 200 // bytes of a data block's label
	maxInline      = 1024
	maxInlineTicks = 8
	leftOutRoom    = 48 // bytes the note of a cut may take
	rawPerClean    = 4  // how much raw text is looked at for each byte kept
	minRaw         = 4 << 10
)

// Clean makes foreign text safe to read: terminal escape sequences and control characters go, line ends become "\n",
// bytes that are no UTF-8 become U+FFFD. Characters that hide or turn text (direction marks, zero-width ones, tags) are
// shown as <U+202E> instead: a reviewer has to see that they were there. Tabs and line breaks stay. Cleaning cleaned
// text changes nothing.
func Clean(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		if n := escapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if hidden(r) {
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
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d' || unicode.IsPrint(r):
			out.WriteRune(r)
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// hidden tells the characters that a reader does not see though a program, or a model, reads them. The two joiners
// stay: scripts need them, and so do emoji.
func hidden(r rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d' || r == '\u00ad' || r == '\ufeff':
		return false
	case r >= 0xe0100 && r <= 0xe01ef: // variation selectors, in which whole texts have been smuggled
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// showHidden writes what stands for the run of hidden characters that s begins with, and gives its length.
func showHidden(out *strings.Builder, s string) int {
	first, n, end := rune(0), 0, len(s)
	for i, r := range s {
		if !hidden(r) {
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

// escapeLen is the length of the terminal escape sequence that s begins with, or 0. A string sequence without its end
// counts only as its introducer: text may not vanish behind an escape that nothing closes.
func escapeLen(s string) int {
	kind, n := byte(0), 0
	switch {
	case s[0] == 0x1b && len(s) > 1:
		kind, n = s[1], 2
	case s[0] == 0x1b:
		return 1
	case s[0] == 0xc2 && len(s) > 1 && s[1] >= 0x80 && s[1] <= 0x9f && s[1] != 0x85:
		kind, n = s[1]-0x40, 2
	default:
		return 0
	}
	switch {
	case kind == '[':
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
			n++
		}
		if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
			n++
		}
		return n
	case strings.IndexByte("]PX^_", kind) >= 0:
		for i := n; i < len(s) && s[i] != '\n'; i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case strings.HasPrefix(s[i:], "\x1b\\"), strings.HasPrefix(s[i:], "\u009c"):
				return i + 2
			}
		}
		return n
	case kind >= 0x20 && kind <= 0x2f: // intermediates and a final byte, as in the choice of a character set
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			n++
		}
		return n
	case s[0] == 0x1b && (kind < 0x20 || kind > 0x7e): // an escape before a line break or a letter takes neither
		return 1
	}
	return n
}

// head gives clean text of at most limit bytes: all of s, or its beginning and a note of how much was left out. Of a
// flood only the part that can matter is cleaned.
func head(s string, limit int) string {
	cut := 0
	if raw := limit*rawPerClean + minRaw; len(s) > raw {
		raw = runeStart(s, raw)
		s, cut = s[:raw], len(s)-raw
	}
	s = prepare(s)
	if cut == 0 && len(s) <= limit {
		return s
	}
	keep := runeStart(s, min(len(s), max(limit-leftOutRoom, 0)))
	return strings.TrimRight(s[:keep], "\n") + fmt.Sprintf("\n… (%d bytes left out)", len(s)-keep+cut)
}

// tail is head for text whose end matters.
func tail(s string, limit int) string {
	cut := 0
	if raw := limit*rawPerClean + minRaw; len(s) > raw {
		cut = len(s) - raw
		for cut < len(s) && !utf8.RuneStart(s[cut]) {
			cut++
		}
		s = s[cut:]
	}
	s = prepare(s)
	if cut == 0 && len(s) <= limit {
		return s
	}
	from := len(s) - min(len(s), max(limit-leftOutRoom, 0))
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return fmt.Sprintf("… (%d bytes left out)\n", from+cut) + s[from:]
}

// runeStart is the start of the character that byte at of s belongs to.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// line is foreign text as one clean line of at most max bytes.
func line(s string, max int) string {
	if raw := max*rawPerClean + minRaw; len(s) > raw {
		s = s[:runeStart(s, raw)]
	}
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if len(s) <= max {
		return s
	}
	return s[:runeStart(s, max-len("…"))] + "…"
}

// code is foreign text (a path, a command) as Markdown code in a line: it cannot end the code.
func code(s string) string {
	s = shortenTicks(line(s, maxInline), maxInlineTicks)
	run := longestRun(s, '`')
	if run == 0 {
		return "`" + s + "`"
	}
	ticks := strings.Repeat("`", run+1)
	return ticks + " " + s + " " + ticks
}

// longestRun is how often c stands in a row in s, at the most.
func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Data is text from an agent, a command, a person or a file as it stands in a prompt or a context file: cleaned (see
// Clean), at most max bytes of it, between two fences of backticks longer than any row of backticks in it, under a
// label of one line. Whatever the text says, it does not end its block.
func Data(label, text string, max int) string { return fenced(label, head(text, max)) }

// DataEnd is Data for text whose end matters, as of a command's output.
func DataEnd(label, text string, max int) string { return fenced(label, tail(text, max)) }

func prepare(text string) string { return shortenTicks(strings.Trim(Clean(text), "\n"), maxTickRun) }

func fenced(label, text string) string {
	// A label may be foreign too: it may not open a block, a heading or a quote of its own.
	label = strings.TrimLeft(strings.ReplaceAll(line(label, maxLabel), "```", "'''"), "~#>+-*=_|< ")
	if strings.TrimSpace(text) == "" {
		return label + ": (empty)\n"
	}
	fence := strings.Repeat("`", max(minFence, longestRun(text, '`')+1))
	return label + ":\n\n" + fence + "data\n" + text + "\n" + fence + "\n"
}

// shortenTicks cuts rows of backticks to most.
func shortenTicks(s string, most int) string {
	if longestRun(s, '`') <= most {
		return s
	}
	var out strings.Builder
	run := 0
	for i := range len(s) {
		if s[i] == '`' {
			run++
		} else {
			run = 0
		}
		if run <= most {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}
