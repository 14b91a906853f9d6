package patch

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"sluice/internal/review"
	"sluice/web/visible"
)

// ErrNone is returned if the diff has no such file or line.
var ErrNone = errors.New("the diff has no such line")

// restBytes is how much of a long line Rest writes at once.
const restBytes = 32 << 10

// ID names a line: f3R200 is line 200 of the third file as it is after the change, f3L12 a removed
// one by its number before. An unchanged line is named by its number after the change.
type ID struct {
	File int // from 1
	Old  bool
	Line int // from 1; 0 = the file
}

func (id ID) String() string {
	switch {
	case id.Line == 0:
		return "f" + strconv.Itoa(id.File)
	case id.Old:
		return "f" + strconv.Itoa(id.File) + "L" + strconv.Itoa(id.Line)
	}
	return "f" + strconv.Itoa(id.File) + "R" + strconv.Itoa(id.Line)
}

// ParseID reads an id as String writes it.
func ParseID(s string) (id ID, ok bool) {
	if len(s) < 2 || len(s) > 24 || s[0] != 'f' {
		return ID{}, false
	}
	at := 1
	for at < len(s) && s[at] >= '0' && s[at] <= '9' {
		at++
	}
	id.File, _ = strconv.Atoi(s[1:at])
	if at < len(s) {
		id.Old = s[at] == 'L'
		id.Line, _ = strconv.Atoi(s[at+1:])
	}
	return id, id.File > 0 && id.Line >= 0 && id.String() == s
}

func idOf(n int, l review.Line) ID {
	if l.Kind == '-' {
		return ID{File: n, Old: true, Line: l.Old}
	}
	return ID{File: n, Line: l.New}
}

// seek goes to the line of the id.
func (s *scanner) seek(id ID) error {
	for {
		is, err := s.next()
		switch {
		case err != nil:
			return err
		case is == atEnd, s.file != nil && s.file.N > id.File:
			return ErrNone
		case is == atLine && s.file.N == id.File && idOf(id.File, s.line) == id:
			return nil
		}
	}
}

// Found is a line and its row in its file, from 0: where File can begin.
type Found struct {
	review.Line
	Row int
}

// Find returns the line that an id names, with as much of its text as Page shows; of a removed line
// New is the number of the line before it, as in a finding. It returns ErrNone if there is none.
func Find(r io.Reader, id ID) (Found, error) {
	s := newScanner(r)
	if err := s.seek(id); err != nil {
		return Found{}, err
	}
	f := Found{s.line, s.row - 1}
	f.Text = review.Visible(string(clip(s.raw, maxLine)))
	return f, nil
}

// Rest writes what a long line has from byte first on, as an element: at most 32 kB, with links to what
// is before and after it.
func Rest(w io.Writer, r io.Reader, id ID, first int64, o Options) error {
	s := newScanner(r)
	if err := s.seek(id); err != nil {
		return err
	}
	var part []byte
	first = max(first, 0)
	piece := s.raw[min(1, len(s.raw)):]
	for at := int64(0); len(piece) > 0; {
		end := at + int64(len(piece))
		if end > first {
			piece = piece[max(first-at, 0):]
			part = append(part, piece[:min(len(piece), restBytes+1-len(part))]...)
		}
		at = end
		if len(part) > restBytes {
			break
		}
		var err error
		if piece, err = s.lines.more(); err != nil {
			return err
		}
	}
	size, err := s.lines.drain()
	if err != nil {
		return err
	}
	size--
	part = clip(part, restBytes)
	to := first + int64(len(part))
	out := fmt.Appendf(nil, `<div class="rest" id="%sx"><p>Bytes %d to %d of %d of line %d`+"\n", id, min(first, size),
		min(to, size), size, id.Line)
	if first > 0 {
		out = o.link(out, "more", "line", id.String(), from(max(first-restBytes, 0)), id.String(), "before")
	}
	if to < size {
		out = o.link(out, "more", "line", id.String(), from(to), id.String(), "after")
	}
	out = append(visible.Text(append(out, "</p><pre>"...), part), "</pre></div>\n"...)
	_, err = w.Write(out)
	return err
}
