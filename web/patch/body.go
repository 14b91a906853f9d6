package patch

import (
	"fmt"
	"strconv"

	"sluice/internal/review"
	"sluice/web/visible"
)

// Limits of a body.
const (
	maxLine = 2000     // bytes of a line that are shown
	maxRun  = 64 << 10 // bytes of lines, removed and added together, in which words are marked
)

// Colours returns the coloured parts of a line of a file, by its number from 1; nil = none.
type Colours func(line int) []visible.Span

// body writes the rows of a file, from one of them on and up to a number of bytes.
type body struct {
	o        *Options
	file     *Change
	out      []byte
	most     int    // bytes of out
	below    int    // bytes of out that the page's own rows have
	from     int    // the first row that is wanted, from 0
	rows     int    // rows that were seen
	next     int    // the first row after those written; 0 = there is none
	hunk     []byte // the head of the hunk it is in
	hunkRow  int
	gone     []row // a run of removed lines, then added ones
	came     []row
	run      int  // bytes of both
	last     byte // the kind of the line before
	apart    bool // the run is too long for marks: its lines are written as they come
	coloured bool
	old, now Colours
}

// row is a line of a hunk that may yet get word marks.
type row struct {
	line  review.Line
	n     int
	text  []byte
	size  int64 // bytes of the line; more than the text has if it was clipped
	words []visible.Span
}

// take takes what the scanner is at. The line's first piece is used before the rest of it is read.
func (b *body) take(s *scanner, is what) error {
	if is == atHead || is == atFile {
		return nil
	}
	n := s.row - 1
	b.rows = s.row
	if b.next > 0 {
		return nil
	}
	switch {
	case is == atHunk:
		b.flush()
		b.apart, b.last = false, '@'
		b.hunk, b.hunkRow = append(b.hunk[:0], clip(s.raw, maxLine)...), n
	case is == atBare:
		b.flush()
	}
	switch {
	case n < b.from || b.next > 0:
		return nil
	case is == atHunk:
		b.add(n, func() { b.head("h", b.hunk) })
		return nil
	case is == atBare:
		b.add(n, func() { b.head("e", []byte("no line end at the end of the file")) })
		return nil
	}
	return b.takeLine(s, n)
}

func (b *body) takeLine(s *scanner, n int) error {
	r := row{line: s.line, n: n}
	r.text = append(r.text, clip(s.raw[min(1, len(s.raw)):], maxLine)...)
	size, err := s.lines.drain()
	if err != nil {
		return err
	}
	r.size = max(size-1, 0)
	kind := s.line.Kind
	if kind == ' ' || kind == '-' && b.last == '+' {
		b.flush()
		b.apart = false
	} else if b.run+len(r.text) > maxRun {
		b.flush()
		b.apart = true
	}
	b.last = kind
	b.run += len(r.text)
	switch kind {
	case '-':
		b.gone = append(b.gone, r)
	case '+':
		b.came = append(b.came, r)
	default:
		b.add(n, func() { b.line(&r) })
	}
	return nil
}

// flush writes the run of changed lines with their words marked.
func (b *body) flush() {
	if len(b.gone) > 0 && len(b.came) > 0 && !b.apart {
		for i, j := range review.Pairs(texts(b.gone), texts(b.came)) {
			if j >= 0 {
				olds, news := review.Differ(b.gone[i].text, b.came[j].text)
				b.gone[i].words, b.came[j].words = spans(olds), spans(news)
			}
		}
	}
	for _, rows := range [][]row{b.gone, b.came} {
		for i := range rows {
			b.add(rows[i].n, func() { b.line(&rows[i]) })
		}
	}
	clear(b.gone)
	clear(b.came)
	b.gone, b.came, b.run = b.gone[:0], b.came[:0], 0
}

func spans(words []review.Span) []visible.Span {
	out := make([]visible.Span, len(words))
	for i, w := range words {
		out[i] = visible.Span{From: w.From, To: w.To}
	}
	return out
}

func texts(rows []row) [][]byte {
	out := make([][]byte, len(rows))
	for i, r := range rows {
		out[i] = r.text
	}
	return out
}

// add writes a row unless it does not fit any more.
func (b *body) add(n int, write func()) {
	if b.next > 0 {
		return
	}
	was, below := len(b.out), b.below
	if n == b.from && n > 0 && n > b.hunkRow {
		b.head("h", b.hunk)
	}
	write()
	if len(b.out)-b.below > b.most && n > b.from {
		b.out, b.below, b.next = b.out[:was], below, n
	}
}

func (b *body) head(class string, text []byte) {
	b.out = append(append(append(b.out, `<tr class="`...), class...), `"><td class="o"></td><td class="n"></td><td>`...)
	b.out = append(visible.Text(b.out, text), "</td></tr>\n"...)
}

// line writes a row: the number before, the number after, the text.
func (b *body) line(r *row) {
	id := idOf(b.file.N, r.line)
	class, said, colours, at := "x", "Line ", b.colours(false), r.line.New
	switch r.line.Kind {
	case '+':
		class, said = "a", "Added line "
	case '-':
		class, said, colours, at = "d", "Removed line ", b.colours(true), r.line.Old
	}
	name := id.String()
	b.out = append(b.out, `<tr class="`+class+`" id="`...)
	b.out = append(append(b.out, name...), `"><td class="o">`...)
	switch r.line.Kind {
	case '-':
		b.number(name, said, r.line.Old, "")
	case ' ':
		b.number(name, said, r.line.Old, " before")
	}
	b.out = append(b.out, `</td><td class="n">`...)
	if r.line.Kind != '-' {
		b.number(name, said, r.line.New, "")
	}
	b.out = append(b.out, `</td><td>`...)
	var coloured []visible.Span
	if colours != nil {
		coloured = colours(at)
	}
	b.out = visible.Line(b.out, r.text, r.words, coloured)
	if left := r.size - int64(len(r.text)); left > 0 {
		b.out = append(b.out, ' ')
		b.out = b.o.link(b.out, "more", "line", name, from(int64(len(r.text))), name,
			fmt.Sprintf("… %d of %d bytes more", left, r.size))
	}
	b.out = append(b.out, "</td></tr>\n"...)
	if b.o.Below != nil {
		was := len(b.out)
		b.out = b.o.Below(b.out, b.file, id)
		b.below += len(b.out) - was
	}
}

// number writes a line's number as a link to the line.
func (b *body) number(name, said string, n int, after string) {
	b.out = append(append(b.o.start(b.out, "at", name, "", name), ` aria-label="`...), said...)
	b.out = append(append(append(strconv.AppendInt(b.out, int64(n), 10), after...), `">`...), strconv.Itoa(n)...)
	b.out = append(b.out, "</a>"...)
}

// colours returns the colours of a side of the file.
func (b *body) colours(old bool) Colours {
	if !b.coloured && b.o.Colour != nil {
		b.old, b.now = b.o.Colour(b.file)
	}
	b.coloured = true
	if old {
		return b.old
	}
	return b.now
}
