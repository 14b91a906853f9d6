// Package visible writes foreign text into HTML. It has the one function that escapes: whatever a
// page shows of a diff, a transcript or a file's name goes through Line, String or Text.
//
// What a reader cannot see is written out in an element of class v: control characters by their
// names (<NUL>, <CR>), marks that hide or turn text and white space other than space and tab as
// <U+202E>, bytes that are not UTF-8 as \xff, the fifth accent and further ones on a letter. A run of
// tabs stays as it is, in an element of class t, so that a stylesheet can paint it.
package visible

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/internal/text"
)

// Span is a part of a line: the bytes from From up to To. Class is its class in HTML, which is
// written as it is; of a changed word it is "".
type Span struct {
	From, To int
	Class    string
}

// String returns foreign text as HTML, for the content of an element or a quoted attribute's value.
// It has no element, and a tab is shown as a control character.
func String(s string) string {
	p := painter{flat: true}
	p.paint([]byte(s))
	return string(p.dst)
}

// Text appends foreign text as HTML, for the content of an element.
func Text(dst, s []byte) []byte { return Line(dst, s, nil, nil) }

// Line appends a line of foreign text as HTML: changed words in <b>, coloured parts in <i>. Spans
// are in order and do not overlap; one that is not within the line is cut.
func Line(dst, line []byte, words, colours []Span) []byte {
	p := painter{dst: dst, words: words, colours: colours}
	p.paint(line)
	return p.dst
}

// painter writes a line; what is open nests as <b><i class=colour><i class=label>.
type painter struct {
	dst            []byte
	words, colours []Span
	flat           bool // without elements
	word           bool
	colour, label  string
	marks          int
}

func (p *painter) paint(line []byte) {
	until := 0
	for i := 0; i < len(line); {
		if i >= until {
			until = p.enter(i)
		}
		c := line[i]
		if c >= ' ' && c < 0x7f {
			p.say("")
			p.marks = 0
			p.ascii(c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(line[i:])
		p.rune(r, size, c)
		i += size
	}
	p.say("")
	p.open(false, "")
}

// enter opens what holds from byte at on, and returns where that may change.
func (p *painter) enter(at int) (until int) {
	word, to := find(&p.words, at)
	colour, also := find(&p.colours, at)
	class := ""
	if colour != nil {
		class = colour.Class
	}
	if (word != nil) != p.word || class != p.colour {
		p.say("")
		p.open(word != nil, class)
	}
	return min(to, also)
}

// find returns the span that has byte at, and where that changes. Those before it are dropped.
func find(spans *[]Span, at int) (*Span, int) {
	for len(*spans) > 0 && (*spans)[0].To <= at {
		*spans = (*spans)[1:]
	}
	switch {
	case len(*spans) == 0:
		return nil, math.MaxInt
	case (*spans)[0].From > at:
		return nil, (*spans)[0].From
	}
	return &(*spans)[0], (*spans)[0].To
}

func (p *painter) open(word bool, class string) {
	if p.colour != "" {
		p.dst = append(p.dst, "</i>"...)
	}
	if p.word && !word {
		p.dst = append(p.dst, "</b>"...)
	}
	if word && !p.word {
		p.dst = append(p.dst, "<b>"...)
	}
	if class != "" {
		p.dst = append(append(append(p.dst, `<i class="`...), class...), `">`...)
	}
	p.word, p.colour = word, class
}

// say closes the label that is open and opens another one; "" opens none.
func (p *painter) say(label string) {
	if label == p.label || p.flat {
		return
	}
	if p.label != "" {
		p.dst = append(p.dst, "</i>"...)
	}
	if label != "" {
		p.dst = append(append(append(p.dst, `<i class="`...), label...), `">`...)
	}
	p.label = label
}

func (p *painter) ascii(c byte) {
	switch c {
	case '<':
		p.dst = append(p.dst, "&lt;"...)
	case '>':
		p.dst = append(p.dst, "&gt;"...)
	case '&':
		p.dst = append(p.dst, "&amp;"...)
	case '"':
		p.dst = append(p.dst, "&#34;"...)
	case '\'':
		p.dst = append(p.dst, "&#39;"...)
	default:
		p.dst = append(p.dst, c)
	}
}

// MaxMarks is how many accents may sit on a letter: a tower of them covers the lines around it.
const MaxMarks = 4

// rune writes a character that is not printable ASCII; first is its first byte.
func (p *painter) rune(r rune, size int, first byte) {
	mark := unicode.Is(unicode.M, r)
	if !mark {
		p.marks = 0
	}
	switch {
	case r == utf8.RuneError && size == 1:
		p.say("v")
		p.dst = fmt.Appendf(p.dst, `\x%02x`, first)
	case r == '\t' && !p.flat:
		p.say("t")
		p.dst = append(p.dst, '\t')
	case r < ' ' || r == 0x7f:
		p.say("v")
		p.dst = append(append(append(p.dst, "&lt;"...), control(r)...), "&gt;"...)
	case text.Inkless(r), mark && p.marks >= MaxMarks:
		p.say("v")
		p.dst = fmt.Appendf(p.dst, "&lt;U+%04X&gt;", r)
	default:
		if mark {
			p.marks++
		}
		p.say("")
		p.dst = utf8.AppendRune(p.dst, r)
	}
}

// control returns the name of a control character. Its picture (U+2400 and on) is in few fonts.
func control(r rune) string {
	const names = "NULSOHSTXETXEOTENQACKBELBS HT LF VT FF CR SO SI DLEDC1DC2DC3DC4NAKSYNETBCANEM SUBESCFS GS RS US "
	if r == 0x7f {
		return "DEL"
	}
	return strings.TrimSpace(names[3*r : 3*r+3])
}
