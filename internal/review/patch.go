package review

import (
	"strconv"
	"strings"

	"sluice/internal/text"
)

// Line is a line of a patch, and its place in the file as it is after the change.
type Line struct {
	Text string // as it is shown: one line, what nobody sees by its number
	File string // "" before the first file
	Kind byte   // '+', '-', ' ' within a hunk, '@' its head, 0 the head of a file
	New  int    // its number in the new file; of '-', of the line before it; of '@', of the first
	Old  int    // its number in the old file
}

// lineEnd stands for a line end within a line.
const lineEnd = "␍"

// Visible returns a line of a patch as a person is shown it: all on one line, and a line end that
// has changed to the one of another system marked.
func Visible(line string) string {
	line = strings.TrimSuffix(line, "\n")
	if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-") {
		line = strings.TrimSuffix(line, "\r")
	}
	return strings.ReplaceAll(text.Reveal(strings.ReplaceAll(text.Seen(line), "\r", "\n")), "\n", lineEnd)
}

// Lines returns the lines of a patch as git writes it. What looks like the head of a file within a
// hunk is a line of the hunk.
func Lines(patch []byte) []Line {
	var out []Line
	p := Place{}
	for raw := range strings.Lines(string(patch)) {
		l := p.Next(strings.TrimSuffix(raw, "\n"))
		l.Text = Visible(raw)
		out = append(out, l)
	}
	return out
}

// Place is where a reader of a patch is; the zero Place is before its first line.
type Place struct {
	file, was        string
	old, new         int // the numbers of the next lines
	oldLeft, newLeft int // lines left in the hunk
}

// InHunk reports whether the next line belongs to a hunk. Of such a line Next needs no more than the
// first byte.
func (p *Place) InHunk() bool { return p.oldLeft > 0 || p.newLeft > 0 }

// Was returns the name that the file had before the change, if the patch has told it.
func (p *Place) Was() string { return p.was }

// Next takes the next line of the patch, without its end, and returns what it is, without its Text.
func (p *Place) Next(line string) Line {
	l := Line{File: p.file, New: p.new - 1, Old: p.old - 1}
	if p.InHunk() {
		return p.inHunk(l, line)
	}
	switch {
	case strings.HasPrefix(line, `\`): // of the last line of the hunk
		l.Kind = ' '
		return l
	case strings.HasPrefix(line, "@@ "):
		if p.begins(line) {
			return Line{File: p.file, Kind: '@', New: p.new, Old: p.old}
		}
	case strings.HasPrefix(line, "diff --git "):
		p.file, p.was = headName(strings.TrimPrefix(line, "diff --git ")), ""
	case strings.HasPrefix(line, "+++ "):
		if name, ok := sideName(strings.TrimPrefix(line, "+++ "), "b/"); ok {
			p.file = name
		}
	case strings.HasPrefix(line, "--- "):
		if name, ok := sideName(strings.TrimPrefix(line, "--- "), "a/"); ok {
			p.file, p.was = name, name
		}
	case strings.HasPrefix(line, "rename from "):
		p.was = unquote(strings.TrimPrefix(line, "rename from "))
	case strings.HasPrefix(line, "copy from "):
		p.was = unquote(strings.TrimPrefix(line, "copy from "))
	case strings.HasPrefix(line, "copy to "):
		p.file = unquote(strings.TrimPrefix(line, "copy to "))
	case strings.HasPrefix(line, "rename to "):
		p.file = unquote(strings.TrimPrefix(line, "rename to "))
	}
	return Line{File: p.file}
}

func (p *Place) inHunk(l Line, line string) Line {
	kind := byte(' ') // an empty line is one whose space was lost
	if line != "" {
		kind = line[0]
	}
	switch kind {
	case '+':
		l.Kind, l.New = kind, p.new
		p.new++
		p.newLeft--
	case '-':
		l.Kind, l.Old = kind, p.old
		p.old++
		p.oldLeft--
	case '\\': // no line end: of the line before
		l.Kind = ' '
	default:
		l.Kind, l.New, l.Old = ' ', p.new, p.old
		p.new++
		p.old++
		p.newLeft--
		p.oldLeft--
	}
	return l
}

// begins reads the head of a hunk, @@ -1,2 +3,4 @@.
func (p *Place) begins(line string) bool {
	words := strings.Fields(line)
	if len(words) < 4 || words[3] != "@@" {
		return false
	}
	old, oldLeft, ok := span(words[1], "-")
	now, newLeft, also := span(words[2], "+")
	if !ok || !also {
		return false
	}
	if oldLeft == 0 {
		old++ // the number is of the line before
	}
	if newLeft == 0 {
		now++
	}
	p.old, p.new, p.oldLeft, p.newLeft = old, now, oldLeft, newLeft
	return true
}

// span reads -1,2: a first line and a number of lines, which is 1 if it is absent.
func span(s, sign string) (first, n int, ok bool) {
	rest, ok := strings.CutPrefix(s, sign)
	if !ok {
		return 0, 0, false
	}
	from, count, has := strings.Cut(rest, ",")
	first, err := strconv.Atoi(from)
	n = 1
	if err == nil && has {
		n, err = strconv.Atoi(count)
	}
	return first, n, err == nil && first >= 0 && n >= 0
}

// headName returns the name in `a/NAME b/NAME`, whose two names are the same.
func headName(s string) string {
	if strings.HasPrefix(s, `"`) {
		_, rest := quotedHead(s)
		name, _ := sideName(strings.TrimPrefix(rest, " "), "b/")
		return name
	}
	if n := len(s) / 2; len(s)%2 == 1 && s[n] == ' ' {
		name, _ := sideName(s[n+1:], "b/")
		return name
	}
	return "" // two names: the lines below say which
}

// sideName returns the name in `a/NAME`; not ok for /dev/null. git ends a name that has a space with
// a tab.
func sideName(s, prefix string) (string, bool) {
	if s == "/dev/null" {
		return "", false
	}
	return strings.CutPrefix(unquote(strings.TrimSuffix(s, "\t")), prefix)
}

// quotedHead returns the quoted name that s begins with, and what follows it.
func quotedHead(s string) (name, rest string) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i+1], s[i+1:]
		}
	}
	return s, ""
}

// unquote returns a name that git wrote in quotes.
func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	s = strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`)
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		if i+3 <= len(s) {
			if n, err := strconv.ParseUint(s[i:i+3], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		if at := strings.IndexByte(`abfnrtv`, s[i]); at >= 0 {
			out.WriteByte("\a\b\f\n\r\t\v"[at])
		} else {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}
