package patch

import (
	"bytes"
	"errors"
	"io"

	"sluice/internal/review"
)

// what is what a scanner is at.
type what byte

const (
	atEnd  what = iota
	atFile      // the first line of a file
	atHead      // another line before its hunks
	atHunk
	atLine
	atBare // the mark of a line without an end
)

// scanner reads a diff as files, hunks and lines.
type scanner struct {
	lines *lines
	place review.Place
	file  *Change     // the file it is in
	line  review.Line // where it is; without its text
	raw   []byte      // the line's first piece
	row   int         // rows of the file so far, this one included
}

func newScanner(r io.Reader) *scanner { return &scanner{lines: newLines(r)} }

// next goes to the next line. Its file is known; what its head says is noted there.
func (s *scanner) next() (what, error) {
	raw, err := s.lines.next()
	if errors.Is(err, io.EOF) {
		return atEnd, nil
	}
	if err != nil {
		return atEnd, err
	}
	s.raw = raw
	in := s.place.InHunk()
	if in {
		s.line = s.place.Next(string(raw[:min(len(raw), 1)]))
	} else {
		s.line = s.place.Next(string(clip(raw, maxHead)))
	}
	is := s.kind(in)
	switch is {
	case atFile:
		s.begin()
	case atHead:
		s.file.head(string(clip(raw, maxHead)))
	case atHunk:
		s.file.Hunks++
		s.row++
	case atLine:
		s.file.count(s.line.Kind)
		s.row++
	case atBare:
		s.row++
	}
	if !in && s.line.File != "" {
		s.file.Path, s.file.Old = s.line.File, s.place.Was()
	}
	return is, nil
}

func (s *scanner) begin() {
	n := 1
	if s.file != nil {
		n = s.file.N + 1
	}
	s.file, s.row = &Change{N: n}, 0
}

// kind tells what the line is. A diff that begins without the head of a file has one without a name.
func (s *scanner) kind(in bool) what {
	switch {
	case !in && bytes.HasPrefix(s.raw, []byte("diff --git ")):
		return atFile
	case s.line.Kind == '@':
		s.named()
		return atHunk
	case len(s.raw) > 0 && s.raw[0] == '\\' && s.line.Kind == ' ':
		s.named()
		return atBare
	case in:
		return atLine
	}
	s.named()
	return atHead
}

func (s *scanner) named() {
	if s.file == nil {
		s.begin()
	}
}
