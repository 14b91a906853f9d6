package review

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/text"
)

// Room is how many bytes an editor may add to a sheet.
const Room = 1 << 20

// ErrNothing is returned for a sheet on which nothing was written.
var ErrNothing = errors.New("nothing was written")

// Read returns what was written on the sheet: the overall words, and the comments with their
// places. The line ends of another system do not count, nor does white space that an editor took off
// the ends of lines.
func (s *Sheet) Read(edited []byte) (words string, comments []findings.Finding, err error) {
	edited = bytes.TrimPrefix(edited, []byte("\uFEFF"))
	switch {
	case len(bytes.TrimSpace(edited)) == 0:
		return "", nil, ErrNothing
	case !utf8.Valid(edited), bytes.IndexByte(edited, 0) >= 0:
		return "", nil, fault.New("save it as UTF-8", "the file is not UTF-8 text")
	}
	exact := &reader{sheet: s, exact: true}
	if exact.read(string(edited)) == nil { // only so an added empty line is known from one of the changes
		return exact.done()
	}
	r := &reader{sheet: s}
	if err := r.read(string(edited)); err != nil {
		return "", nil, err
	}
	return r.done()
}

// reader reads an edited sheet line by line.
type reader struct {
	sheet    *Sheet
	exact    bool // white space at the end of a line counts
	next     int  // the line of the patch that comes next
	words    []string
	comments []comment
	open     bool // the line before was of the last comment
}

// comment is a comment as it is written: below a line.
type comment struct {
	below Line
	text  string
}

func (r *reader) read(edited string) error {
	n := 0
	for line := range strings.Lines(edited) {
		n++
		if err := r.take(n, strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	if r.next < len(r.sheet.lines) {
		return fault.New("restore it", "the changes' line %q is missing", text.Clip(r.sheet.lines[r.next].Text, 80))
	}
	return nil
}

// isNext reports whether the line is the next one of the patch.
func (r *reader) isNext(line string) bool {
	if r.next == len(r.sheet.lines) {
		return false
	}
	want := r.sheet.lines[r.next].Text
	return line == want || !r.exact && strings.TrimRight(line, " \t") == strings.TrimRight(want, " \t")
}

func (r *reader) take(n int, raw string) error {
	line := strings.TrimRight(raw, " \t")
	said, marked := strings.CutPrefix(line, Marker)
	said = strings.TrimPrefix(said, " ")
	open := r.open
	r.open = false
	switch {
	case marked && r.next == 0:
		r.words = append(r.words, said)
	case marked && open:
		r.comments[len(r.comments)-1].text += "\n" + said
		r.open = true
	case marked:
		r.comments = append(r.comments, comment{below: r.sheet.lines[r.next-1], text: said})
		r.open = true
	case r.isNext(raw):
		r.next++
	case r.next == 0 && !slices.Contains(r.sheet.head, line):
		r.words = append(r.words, line)
	case line == "", slices.Contains(r.sheet.head, line), slices.Contains(r.sheet.tail, line):
	case r.next < len(r.sheet.lines):
		next := text.Clip(r.sheet.lines[r.next].Text, 200)
		return fault.New(fmt.Sprintf("begin a comment with %q, and restore the line if you changed it: %s", Marker, next),
			"line %d of the file is neither a comment nor the next line of the changes: %s", n, text.Line(line))
	default:
		return fault.New(fmt.Sprintf("begin a comment with %q; overall words go to the top", Marker),
			"line %d of the file is not a comment: %s", n, text.Line(line))
	}
	return nil
}

// done returns what was read, without empty comments.
func (r *reader) done() (string, []findings.Finding, error) {
	var list []findings.Finding
	for _, c := range r.comments {
		f := findings.Finding{File: c.below.File, Line: max(c.below.New, 0), Message: strings.TrimSpace(c.text)}
		switch {
		case f.Message == "":
			continue
		case len(f.Message) > findings.MaxText-100:
			return "", nil, fault.New("shorten it", "the comment on %s has more than %d bytes",
				text.Line(f.Place()), findings.MaxText-100)
		case c.below.Kind == '-': // the line itself is the agent's text, and is not repeated as the person's
			f.Message = fmt.Sprintf("(on the removed line %d) %s", c.below.Old, f.Message)
		}
		list = append(list, f)
	}
	if len(list) > findings.Max {
		return "", nil, fault.New("keep the most important ones",
			"there are %d comments: at most %d are read", len(list), findings.Max)
	}
	words := strings.TrimSpace(strings.Join(r.words, "\n"))
	if words == "" && len(list) == 0 {
		return "", nil, ErrNothing
	}
	return words, list, nil
}
