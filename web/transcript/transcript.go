// Package transcript reads what a launch printed in pieces for a page: from the end, before a place or
// after one, at the borders of lines, whatever the size of the file and while it grows. Each line is
// classified as the reader of the agent's program does, and is HTML.
//
// Reading order: pos.go (places, the files of an output), piece.go (which bytes), transcript.go (lines),
// follow.go (an output that grows).
package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/agents/program"
	"sluice/internal/text"
	"sluice/web/ansi"
)

// Limits of a piece.
const (
	MaxBytes = 256 << 10 // of the file
	MaxLines = 2000
	MaxHTML  = 1 << 20 // bytes of all lines

	maxEvent = 1000 // lines of one event
	toolMost = 5    // lines of a tool's text
)

// Kinds of lines besides those of package program.
const (
	Plain program.Kind = "plain" // of a program whose stream sluice does not read
	Note  program.Kind = "note"  // of sluice's own: what is left out
)

// Line is a line for a person.
type Line struct {
	At     Pos // of the line in the file; several lines can be of one
	Kind   program.Kind
	Name   string // of the tool, cleaned, not escaped
	HTML   string // its text: <i> with classes of web/ansi and web/visible
	Follow bool   // it goes on with what the line before says
}

// Piece is a part of an output.
type Piece struct {
	Lines   []Line
	Earlier *Pos // where Before goes on; nil = this is the beginning
	Later   Pos  // where After goes on
	More    bool // something follows already
	Unsaid  int  // lines of the file that say nothing to a person
	// Gap reports that the place asked for is not there any more: the piece is the end, and takes the
	// place of what was shown.
	Gap bool
}

// raw is a line of the file. If it is too long to be read, only its size is known.
type raw struct {
	at   Pos
	text []byte
	size int64
}

// fill sets the lines, at most as many as fit. Without room for all of them the first ones are left
// for later, or the last ones for earlier.
func (p *Piece) fill(say func(raw) []Line, lines []raw, fromEnd bool) {
	said := make([][]Line, len(lines))
	for i, l := range lines {
		said[i] = say(l)
	}
	size, count, taken := 0, 0, 0
	for ; taken < len(lines); taken++ {
		at := taken
		if fromEnd {
			at = len(lines) - 1 - taken
		}
		n, bytes := len(said[at]), 0
		for _, l := range said[at] {
			bytes += len(l.HTML)
		}
		if taken > 0 && (count+n > MaxLines || size+bytes > MaxHTML) {
			p.stop(lines, at, fromEnd)
			break
		}
		if n == 0 {
			p.Unsaid++
		}
		count, size = count+n, size+bytes
	}
	if fromEnd {
		said = said[len(said)-taken:]
	} else {
		said = said[:taken]
	}
	p.Lines = append(p.Lines, slices.Concat(said...)...)
}

// stop notes that line at is not in the piece.
func (p *Piece) stop(lines []raw, at int, fromEnd bool) {
	if fromEnd {
		p.Earlier = &lines[at+1].at
	} else {
		p.Later, p.More = lines[at].at, true
	}
}

// sayer returns what turns a line of the file into lines for a person.
func sayer(format string) func(raw) []Line {
	var paint ansi.Painter
	if !program.Known(format) {
		return func(l raw) []Line {
			if l.text == nil {
				return tooLong(l)
			}
			var out []Line
			painted := bytes.Split(bytes.TrimSuffix(l.text, []byte("\r")), []byte("\r"))
			for i, part := range painted {
				if i == maxEvent {
					return append(out, left(l.at, len(painted)-i))
				}
				out = append(out, Line{At: l.at, Kind: Plain, HTML: string(paint.Line(nil, part)), Follow: i > 0})
			}
			return out
		}
	}
	r := program.NewReader(format, time.Now)
	return func(l raw) (out []Line) {
		if l.text == nil {
			return tooLong(l)
		}
		for _, e := range r.Line(l.text) {
			out = append(out, event(l.at, e)...)
		}
		return out
	}
}

// event returns an event as lines. An agent wrote its texts.
func event(at Pos, e program.Event) (out []Line) {
	var paint ansi.Painter
	most := maxEvent
	if e.Kind != program.Text {
		most = toolMost
	}
	lines := strings.Split(strings.TrimSpace(e.Text), "\n")
	for i, s := range lines {
		if i == most {
			return append(out, left(at, len(lines)-i))
		}
		l := Line{At: at, Kind: e.Kind, HTML: string(paint.Line(nil, []byte(strings.TrimSuffix(s, "\r")))), Follow: i > 0}
		if i == 0 {
			l.Name = text.Line(e.Name)
		}
		out = append(out, l)
	}
	return out
}

func tooLong(l raw) []Line {
	return []Line{{At: l.at, Kind: Note, HTML: fmt.Sprintf("a line of %d bytes is not shown", l.size)}}
}

func left(at Pos, n int) Line {
	return Line{At: at, Kind: Note, HTML: text.Plural(n, "more line"), Follow: true}
}
