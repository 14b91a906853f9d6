package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of text in Markdown. All but the rows are in bytes.
const (
	minFence    = 4   // backticks of a data block's fence
	maxTickRun  = 100 // backticks in a row in a data block; so its fence stays short
	maxLabel    = 200 // of a data block's label
	maxCode     = 1024
	maxCodeTick = 8  // backticks in a row in code
	leftOutRoom = 48 // for the note of what was left out
	rawPerClean = 4  // raw text that is read for each byte kept
	minRaw      = 4 << 10
)

// Head returns at most limit bytes of s, revealed: all of it, or its beginning and a note of how much was
// left out. Of a flood only the part that can matter is read.
func Head(s string, limit int) string {
	cut := 0
	if raw := limit*rawPerClean + minRaw; len(s) > raw {
		raw = runeStart(s, raw)
		s, cut = s[:raw], len(s)-raw
	}
	s = revealBlock(s)
	if cut == 0 && len(s) <= limit {
		return s
	}
	keep := runeStart(s, min(len(s), max(limit-leftOutRoom, 0)))
	return strings.TrimRight(s[:keep], "\n") + fmt.Sprintf("\n… (%d bytes left out)", len(s)-keep+cut)
}

// Tail is Head for text whose end matters.
func Tail(s string, limit int) string {
	cut := 0
	if raw := limit*rawPerClean + minRaw; len(s) > raw {
		cut = nextRune(s, len(s)-raw)
		s = s[cut:]
	}
	s = revealBlock(s)
	if cut == 0 && len(s) <= limit {
		return s
	}
	from := nextRune(s, len(s)-min(len(s), max(limit-leftOutRoom, 0)))
	return fmt.Sprintf("… (%d bytes left out)\n", from+cut) + s[from:]
}

// nextRune returns the start of the first character at or after byte at of s.
func nextRune(s string, at int) int {
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}

// RevealLine is Reveal for one line of at most most bytes: spaces and line breaks become one space.
func RevealLine(s string, most int) string {
	if raw := most*rawPerClean + minRaw; len(s) > raw {
		s = s[:runeStart(s, raw)]
	}
	return Clip(strings.Join(strings.Fields(Reveal(s)), " "), most)
}

// Cause quotes the reason of a failure from a process's output, on one line: the beginning and the end of its part
// below "stderr:", else the last line.
func Cause(output string, most int) string {
	if _, errs, ok := strings.Cut("\n"+output, "\nstderr:\n"); ok {
		return ends(Reveal(errs), most, Clean)
	}
	return LastLine(output, most)
}

// LastLine returns the last line of an output, at most most bytes of it.
func LastLine(output string, most int) string {
	lines := strings.Split(strings.TrimSpace(Reveal(output)), "\n")
	return RevealLine(lines[len(lines)-1], most)
}

// Brief returns a reason without the output of a process, which may follow it.
func Brief(why string) string {
	for _, output := range []string{"\n\nstdout:\n", "\n\nstderr:\n"} {
		why, _, _ = strings.Cut(why, output)
	}
	return why
}

// Code is foreign text (a path, a command) as Markdown code within a line: it cannot end the code.
func Code(s string) string {
	s = ShortenTicks(RevealLine(s, maxCode), maxCodeTick)
	row := longestRow(s)
	if row == 0 {
		return "`" + s + "`"
	}
	ticks := strings.Repeat("`", row+1)
	return ticks + " " + s + " " + ticks
}

// Data is text from an agent, a command, a person or a file as it stands in Markdown: revealed, at most
// limit bytes of it, under a label of one line, between two fences longer than any row of backticks in it.
// Whatever the text says, it does not end its block.
func Data(label, body string, limit int) string { return fenced(label, Head(body, limit)) }

// DataEnd is Data for text whose end matters, as of a command's output.
func DataEnd(label, body string, limit int) string { return fenced(label, Tail(body, limit)) }

func fenced(label, body string) string {
	// A label may be foreign too: it may not open a block, a heading or a quote of its own.
	label = strings.ReplaceAll(RevealLine(label, maxLabel), "```", "'''")
	label = strings.TrimLeft(label, "~#>+-*=_|< ")
	if strings.TrimSpace(body) == "" {
		return label + ": (empty)\n"
	}
	fence := strings.Repeat("`", max(minFence, longestRow(body)+1))
	return label + ":\n\n" + fence + "data\n" + body + "\n" + fence + "\n"
}

// revealBlock reveals text for a block.
func revealBlock(s string) string { return ShortenTicks(strings.Trim(Reveal(s), "\n"), maxTickRun) }

// longestRow returns the length of the longest row of backticks in s.
func longestRow(s string) int {
	longest, row := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			row = 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	return longest
}

// ShortenTicks cuts rows of backticks to most.
func ShortenTicks(s string, most int) string {
	if longestRow(s) <= most {
		return s
	}
	var out strings.Builder
	row := 0
	for i := range len(s) {
		if s[i] == '`' {
			row++
		} else {
			row = 0
		}
		if row <= most {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}
