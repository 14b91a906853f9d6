package review

import (
	"fmt"
	"strings"
)

// Marker begins a line of a comment. No line of a patch begins with it, so that a comment cannot be
// taken for the patch, or a changed line of the patch for a comment.
const Marker = ">"

// tailLines is how many lines follow the changes at least.
const tailLines = 14

// Sheet is a patch to be commented on.
type Sheet struct {
	lines []Line
	head  []string
	tail  []string
}

// About is what a sheet is about, in words of one line.
type About struct {
	Title   string // the round and its content
	Outcome string // what the comments are given with
	Cut     bool   // the patch goes on
}

// New returns the sheet of a patch.
func New(a About, patch []byte) *Sheet {
	s := &Sheet{lines: Lines(patch)}
	for i, l := range s.lines {
		if strings.HasPrefix(l.Text, Marker) { // of what is not git's, such as a file's name
			s.lines[i].Text = " " + l.Text
		}
	}
	s.head = []string{
		"# " + a.Title,
		"#",
		"# Write your overall words above these lines, and a comment under the line of the",
		fmt.Sprintf("# changes that it is about. Each line of a comment begins with %q:", Marker),
		"#",
		"#     +	return nil",
		"#     > This hides the error.",
		"#",
		"# Leave all other lines as they are. Save and close the file to " + a.Outcome + " the gate.",
		"# To decide nothing, write nothing, or empty the file.",
	}
	if a.Cut {
		s.head = append(s.head, "# The changes go on: only their first part is below.")
	}
	// Editors read settings from the last lines of a file (vim 5, Kate 10) or its last page (Emacs),
	// which must not be the agent's.
	s.tail = []string{"\f", "# End of the changes.", "#", "# To decide nothing, empty the file."}
	for len(s.tail) < tailLines {
		s.tail = append(s.tail, "#")
	}
	return s
}

// Text returns the sheet as it is given to an editor, with words at the top.
func (s *Sheet) Text(words string) []byte {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(words) + "\n\n")
	for _, l := range s.head {
		b.WriteString(l + "\n")
	}
	b.WriteString("\n")
	for _, l := range s.lines {
		b.WriteString(l.Text + "\n")
	}
	b.WriteString("\n")
	for _, l := range s.tail {
		b.WriteString(l + "\n")
	}
	return []byte(b.String())
}
