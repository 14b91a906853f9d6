package gates

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/internal/text"
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
	s = strings.Join(strings.Fields(text.Reveal(s)), " ")
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

func prepare(s string) string {
	return shortenTicks(strings.Trim(text.Reveal(s), "\n"), maxTickRun)
}

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
