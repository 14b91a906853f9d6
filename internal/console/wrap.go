package console

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Wrap returns s in lines of at most width cells; 0 = on one line. It breaks between words, and a
// longer word after a comma or, without one, anywhere.
func Wrap(s string, width int) (lines []string) {
	if width <= 0 {
		return []string{s}
	}
	for l := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapLine(l, width)...)
	}
	return lines
}

func wrapLine(s string, width int) (lines []string) {
	line, used := "", 0
	for i, word := range strings.Split(s, " ") {
		gap := min(i, 1)
		if used+gap+Width(word) > width {
			if bare := strings.TrimRight(line, " "); bare != "" {
				lines = append(lines, bare)
			}
			line, used, gap = "", 0, 0
		}
		for Width(word) > width {
			var head string
			head, word = split(word, width)
			lines = append(lines, head)
		}
		line += strings.Repeat(" ", gap) + word
		used += gap + Width(word)
	}
	return append(lines, strings.TrimRight(line, " "))
}

// split breaks a word that is wider than width.
func split(word string, width int) (head, rest string) {
	head = ansi.Truncate(word, width, "")
	switch comma := strings.LastIndexByte(head, ','); {
	case head == "": // a wide character in one cell
		return word, ""
	case strings.Contains(word, "\x1b"):
		return head, ansi.TruncateLeft(word, width, "")
	case comma > 0:
		head = head[:comma+1]
	}
	return head, word[len(head):]
}
