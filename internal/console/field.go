package console

import (
	"fmt"
	"strings"

	"sluice/internal/text"
)

// LabelWidth is how wide the labels of fields are.
const LabelWidth = 10

// FieldAt is the column in which the text of a field begins.
const FieldAt = LabelWidth + 4

// fieldMost bounds a text of several lines, in characters.
const fieldMost = 4000

// Title writes a heading, unless JSON is written.
func (c *Console) Title(format string, args ...any) {
	if !c.JSON {
		c.Print("%s", c.Paint(Bold, fmt.Sprintf(format, args...)))
	}
}

// Field writes a label and a line, unless that is empty.
func (c *Console) Field(label, s string) {
	if s != "" {
		c.labelled(label, s)
	}
}

func (c *Console) labelled(label, s string) {
	lines := []string{s}
	if room := c.Width() - FieldAt; room >= flexLeast && Width(s) > room {
		lines = Wrap(s, room)
	}
	for _, l := range lines {
		c.Print("  %s  %s", c.Paint(Dim, Pad(label, LabelWidth)), l)
		label = ""
	}
}

// Marked writes a text after a yellow word, in lines that fit the terminal.
func (c *Console) Marked(word, s string) {
	c.PrintWrapped(0, Joined(Styled(word, Yellow), Styled(" "+s, Plain)))
}

// Text writes a label and a text of several lines, cleaned, unless that is empty.
func (c *Console) Text(label, s string) {
	s = strings.TrimSpace(text.CleanLines(s, fieldMost))
	if s == "" {
		return
	}
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			label = ""
		}
		c.labelled(label, l) // an empty line is part of the text
	}
}
