package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"sluice/engine"
	"sluice/internal/form"
	"sluice/internal/text"
)

type input struct {
	verb  string // fail or veto; "" = the first word is the outcome; "filter" for the filter
	what  target // of a fail or a veto
	lines bool   // several lines are allowed
	text  []rune
	at    int  // where the next character goes
	back  mode // where Esc and Enter lead

	form *form.Form // of the answer of a pass; nil = words are typed
	said string     // the words of that pass
}

// press edits the text. done: Enter; left: Esc.
func (in *input) press(k tea.KeyPressMsg) (done, left bool) {
	switch k.String() {
	case "enter":
		return true, false
	case "esc":
		return false, true
	case "alt+enter", "ctrl+j", "shift+enter":
		if in.lines {
			in.insert("\n")
		}
	case "left", "ctrl+b":
		in.at = max(in.at-1, 0)
	case "right", "ctrl+f":
		in.at = min(in.at+1, len(in.text))
	case "home", "ctrl+a":
		in.at = in.line(in.at)
	case "end", "ctrl+e":
		for in.at < len(in.text) && in.text[in.at] != '\n' {
			in.at++
		}
	case "up":
		in.up()
	case "down":
		in.down()
	case "backspace", "ctrl+h":
		in.cut(max(in.at-1, 0), in.at)
	case "delete", "ctrl+d":
		in.cut(in.at, min(in.at+1, len(in.text)))
	case "ctrl+u":
		in.cut(in.line(in.at), in.at)
	case "ctrl+w":
		from := in.at
		for from > 0 && unicode.IsSpace(in.text[from-1]) {
			from--
		}
		for from > 0 && !unicode.IsSpace(in.text[from-1]) {
			from--
		}
		in.cut(from, in.at)
	default:
		in.insert(k.Text)
	}
	return false, false
}

// insert inserts a text without what a terminal may take for a command.
func (in *input) insert(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	var add []rune
	for _, line := range strings.SplitAfter(s, "\n") {
		for _, r := range line {
			switch {
			case r == '\n' && in.lines:
				add = append(add, r)
			case r == '\n' || r == '\t':
				add = append(add, ' ')
			case r == ' ' || text.Clean(string(r), 1) != "":
				add = append(add, r)
			}
		}
	}
	if len(string(in.text))+len(string(add)) > engine.MaxFeedback {
		return
	}
	in.text = append(in.text[:in.at:in.at], append(add, in.text[in.at:]...)...)
	in.at += len(add)
}

func (in *input) cut(from, to int) {
	in.text = append(in.text[:from:from], in.text[to:]...)
	in.at = from
}

// line returns the start of the line that contains a character.
func (in *input) line(at int) int {
	for at > 0 && in.text[at-1] != '\n' {
		at--
	}
	return at
}

// up and down move to the line before and after, keeping the column.
func (in *input) up() {
	from := in.line(in.at)
	if from == 0 {
		in.at = 0
		return
	}
	before := in.line(from - 1)
	in.at = min(before+in.at-from, from-1)
}

func (in *input) down() {
	from, end := in.line(in.at), in.at
	for end < len(in.text) && in.text[end] != '\n' {
		end++
	}
	if end == len(in.text) {
		in.at = end
		return
	}
	col := in.at - from
	in.at = end + 1
	for ; col > 0 && in.at < len(in.text) && in.text[in.at] != '\n'; col-- {
		in.at++
	}
}

func (in *input) words() string { return strings.TrimSpace(string(in.text)) }

// shown returns the text with a mark at the cursor.
func (in *input) shown() string {
	return string(in.text[:in.at]) + "▏" + string(in.text[in.at:])
}
