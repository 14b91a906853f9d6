// Package ansi turns what a program prints for a terminal into HTML: colours and weights as classes,
// everything else of a terminal's sequences (titles, links, images, moves of the cursor) dropped, and
// what a reader cannot see written out by web/visible. Concealed text stays visible.
//
// Classes: fg0 to fg15 and bg0 to bg15 for the terminal's sixteen colours, of which the nearest stands
// for any other; bold, dim, it, ul, st. No attribute but class is written.
package ansi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"sluice/internal/text"
	"sluice/web/visible"
)

// maxLine is how many bytes of a line are shown.
const maxLine = 4000

// Painter writes the lines of an output; the zero Painter begins one without colours.
type Painter struct {
	fg, bg                int // 1 + the number of the colour; 0 = none
	bold, dim, it, ul, st bool
	reversed              bool
	class                 string
	line                  []byte
	spans                 []visible.Span
	left                  int // bytes of the line that are not shown
}

// HTML returns an output as HTML for a <pre>, at most most bytes of whole lines, and how many bytes of
// the output were left out at its end. A carriage return ends a line, as it does in sluice's own
// screens: what a terminal would have painted over stays.
func HTML(output []byte, most int) (html []byte, left int) {
	var p Painter
	for len(output) > 0 {
		line, rest := cut(output)
		was := len(html)
		html = append(p.Line(html, line), '\n')
		if len(html) > most {
			return html[:was], len(output)
		}
		output = rest
	}
	return html, 0
}

// cut returns the first line and what follows it.
func cut(s []byte) (line, rest []byte) {
	i := bytes.IndexAny(s, "\r\n")
	switch {
	case i < 0:
		return s, nil
	case s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n':
		return s[:i], s[i+2:]
	}
	return s[:i], s[i+1:]
}

// Line appends a line as HTML. Colours last until they are changed, as on a terminal. A line that is
// too long is clipped, and ends with the number of bytes that are left out.
func (p *Painter) Line(dst, line []byte) []byte {
	p.line, p.spans, p.left = p.line[:0], p.spans[:0], 0
	s := string(line)
	for i := 0; i < len(s); {
		if c := s[i]; c == 0x1b || c == 0xc2 {
			if n := text.EscapeLen(s[i:]); n > 0 {
				p.escape(s[i : i+n])
				i += n
				continue
			}
		}
		to := i + 1
		for to < len(s) && s[to] != 0x1b && s[to] != 0xc2 {
			to++
		}
		p.put(s[i:to])
		i = to
	}
	dst = visible.Line(dst, p.line, nil, p.spans)
	if p.left > 0 {
		dst = fmt.Appendf(dst, ` <i class="v">… %d bytes more</i>`, p.left)
	}
	return dst
}

// put adds text in the colours that hold.
func (p *Painter) put(s string) {
	if room := maxLine - len(p.line); p.left > 0 || len(s) > room {
		short := text.Cut(s, room, "")
		if p.left > 0 {
			short = ""
		} else if !strings.HasPrefix(s, short) { // not UTF-8: its bytes count
			short = s[:room]
		}
		p.left += len(s) - len(short)
		s = short
	}
	from := len(p.line)
	p.line = append(p.line, s...)
	if p.class == "" || s == "" {
		return
	}
	if last := len(p.spans) - 1; last >= 0 && p.spans[last].To == from && p.spans[last].Class == p.class {
		p.spans[last].To = len(p.line)
		return
	}
	p.spans = append(p.spans, visible.Span{From: from, To: len(p.line), Class: p.class})
}

// escape takes a sequence, of which only colours and weights count.
func (p *Painter) escape(s string) {
	params, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		params, ok = strings.CutPrefix(s, "\u009b")
	}
	params, sgr := strings.CutSuffix(params, "m")
	if !ok || !sgr || len(params) > 100 || strings.Trim(params, "0123456789;:") != "" {
		return
	}
	for list := strings.Split(params, ";"); len(list) > 0; {
		list = list[p.set(list):]
	}
	p.class = p.classes()
}

// set takes the first parameter of a list with what belongs to it, and returns how many those are.
func (p *Painter) set(list []string) int {
	first, sub, colon := strings.Cut(list[0], ":")
	n, _ := strconv.Atoi(first)
	switch {
	case n == 0:
		p.fg, p.bg, p.bold, p.dim, p.it, p.ul, p.st, p.reversed = 0, 0, false, false, false, false, false, false
	case n == 1:
		p.bold = true
	case n == 2:
		p.dim = true
	case n == 3:
		p.it = true
	case n == 4:
		p.ul = sub != "0"
	case n == 7, n == 27:
		p.reversed = n == 7
	case n == 9, n == 29:
		p.st = n == 9
	case n == 21, n == 24:
		p.ul = n == 21
	case n == 22:
		p.bold, p.dim = false, false
	case n == 23:
		p.it = false
	case n >= 30 && n <= 37:
		p.fg = n - 30 + 1
	case n == 39:
		p.fg = 0
	case n >= 40 && n <= 47:
		p.bg = n - 40 + 1
	case n == 49:
		p.bg = 0
	case n >= 90 && n <= 97:
		p.fg = n - 90 + 9
	case n >= 100 && n <= 107:
		p.bg = n - 100 + 9
	case n == 38 || n == 48:
		rest := list[1:]
		if colon {
			rest = strings.Split(sub, ":")
			if len(rest) == 5 && rest[0] == "2" { // 2:SPACE:R:G:B
				rest = append(rest[:1:1], rest[2:]...)
			}
		}
		colour, used := wide(rest)
		if n == 38 {
			p.fg = colour
		} else {
			p.bg = colour
		}
		if !colon {
			return 1 + used
		}
	}
	return 1
}

// wide reads 5;N or 2;R;G;B as the nearest of the sixteen colours, 1 + its number.
func wide(list []string) (colour, used int) {
	num := func(i int) int {
		n, err := strconv.Atoi(list[i])
		if err != nil {
			return 0
		}
		return min(n, 255)
	}
	switch {
	case len(list) >= 2 && list[0] == "5":
		n := num(1)
		switch {
		case n < 16:
			return n + 1, 2
		case n >= 232:
			grey := 8 + (n-232)*10
			return nearest(grey, grey, grey), 2
		}
		n -= 16
		return nearest(n/36*51, n/6%6*51, n%6*51), 2
	case len(list) >= 4 && list[0] == "2":
		return nearest(num(1), num(2), num(3)), 4
	}
	return 0, len(list)
}

// nearest returns 1 + the number of the colour that is like this one.
func nearest(r, g, b int) int {
	top := max(r, g, b)
	switch {
	case top < 48:
		return 1
	case top-min(r, g, b) < 40 && top < 128:
		return 9
	case top-min(r, g, b) < 40 && top < 224:
		return 8
	}
	colour := 0
	for i, c := range []int{r, g, b} {
		if c > top*2/3 {
			colour |= 1 << i
		}
	}
	if top >= 192 {
		colour += 8
	}
	return colour + 1
}

// classes returns the classes of what holds. Text in the colour of its ground keeps the page's colour:
// nothing is hidden.
func (p *Painter) classes() string {
	fg, bg := p.fg, p.bg
	if p.reversed {
		fg, bg = bg, fg
		if fg == 0 && bg == 0 {
			fg, bg = 1, 8
		}
	}
	if fg == bg {
		fg, bg = 0, 0
	}
	var out []string
	if fg > 0 {
		out = append(out, "fg"+strconv.Itoa(fg-1))
	}
	if bg > 0 {
		out = append(out, "bg"+strconv.Itoa(bg-1))
	}
	for _, on := range []struct {
		is   bool
		name string
	}{{p.bold, "bold"}, {p.dim, "dim"}, {p.it, "it"}, {p.ul, "ul"}, {p.st, "st"}} {
		if on.is {
			out = append(out, on.name)
		}
	}
	return strings.Join(out, " ")
}
