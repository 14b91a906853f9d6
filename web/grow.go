package web

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"slices"
	"time"

	"sluice/web/transcript"
)

// growing is how often an output is read while its agent works.
const growing = time.Second

// growth keeps the end of an output: each line is read and rendered once, for all who look.
type growth struct {
	pages *pages
	seed  maphash.Seed

	page    *attemptPage
	from    *transcript.Follower
	fresh   bool             // from has read nothing yet
	places  []transcript.Pos // of each line
	size    int              // of all lines, in bytes
	earlier *transcript.Pos  // before which there is more; nil = there is nothing
	unsaid  int
	none    string // why there is no line

	now grown
}

// grown is what is shown of an output at a time. Its members are not changed any more.
type grown struct {
	news   int      // counts the changes
	begun  int      // how often it began anew; 0 = the page shows no output
	first  int      // number of the first line
	lines  [][]byte // an element each
	head   []byte   // the element around them, without its end
	around map[string]part
}

// more reads and renders what has come since; p is nil if the page shows no output.
func (g *growth) more(p *attemptPage) error {
	if p == nil {
		g.now = grown{}
		return nil
	}
	was, begun, anew := g.page, g.now.begun, false
	if was == nil || was.out.Dir != p.out.Dir || was.out.Format != p.out.Format {
		g.from, g.fresh, anew = p.out.Follow(), true, true
	}
	piece, err := g.from.More(p.out.Ended)
	missing := errors.Is(err, fs.ErrNotExist)
	none, err := p.none(err)
	if err != nil {
		g.page = nil // begin again
		return err
	}
	if g.page = p; anew || piece.Gap || missing && len(g.now.lines) > 0 {
		g.now.first, g.now.lines, g.now.begun = 0, nil, g.now.begun+1
		g.places, g.size, g.unsaid = nil, 0, 0
	}
	if g.fresh || piece.Gap {
		g.earlier = piece.Earlier
	}
	if g.fresh = missing; missing {
		g.from = p.out.Follow()
	}
	if err := g.add(piece.Lines); err != nil {
		return err
	}
	if len(g.now.lines) > 0 {
		none = ""
	}
	if g.unsaid += piece.Unsaid; none != g.none {
		g.now.begun++
	}
	if g.none = none; p != was || len(piece.Lines)+piece.Unsaid > 0 || g.now.begun != begun {
		return g.frame()
	}
	return nil
}

// add appends lines, and drops those from the beginning that are too many.
func (g *growth) add(more []transcript.Line) error {
	if len(more) == 0 {
		return nil
	}
	lines := slices.Clone(g.now.lines)
	for _, l := range more {
		html, err := g.pages.render("said", saidOf(l))
		if err != nil {
			return err
		}
		html = bytes.ReplaceAll(html, []byte("\n"), []byte(" ")) // a line end would end a message
		lines, g.places, g.size = append(lines, html), append(g.places, l.At), g.size+len(html)
	}
	drop := 0
	for len(lines)-drop > 1 && (len(lines)-drop > transcript.MaxLines || g.size > transcript.MaxHTML) {
		g.size -= len(lines[drop])
		drop++
	}
	for ; drop > 0 && drop < len(lines)-1 && g.places[drop] == g.places[drop-1]; drop++ { // the rest of an event
		g.size -= len(lines[drop])
	}
	if drop > 0 {
		lines, g.places, g.now.first = slices.Clone(lines[drop:]), slices.Clone(g.places[drop:]), g.now.first+drop
		g.earlier = &g.places[0]
	}
	g.now.lines = lines
	return nil
}

// frame renders what is around the lines.
func (g *growth) frame() (err error) {
	p := *g.page
	p.None, p.Unsaid = g.none, g.unsaid
	if g.earlier != nil {
		p.Earlier = p.link("before", *g.earlier)
	}
	head, err := g.pages.render("transcript", p)
	if err != nil {
		return err
	}
	g.now.news++
	g.now.head = bytes.TrimSuffix(head, []byte(endOfLines))
	g.now.around, err = g.pages.renderAll(g.seed, p, "attemptnav", "unsaid")
	return err
}

// endOfLines is the end of the element around the lines.
const endOfLines = "</section>"

// send writes the lines that a stream has not sent, or all with their element.
func (g grown) send(w io.Writer, sent *seen) (wrote bool, err error) {
	next, from, end := g.first+len(g.lines), 0, endOfLines
	write := func(b []byte) {
		if err == nil {
			_, err = w.Write(b)
		}
	}
	switch {
	case g.begun == 0 || g.begun == sent.begun && next == sent.next:
		return false, nil
	case g.begun != sent.begun || sent.next < g.first:
		write(bytes.TrimSuffix(message(g.head), []byte("\n\n")))
	default:
		from, end = sent.next-g.first, "</div>"
		write(fmt.Appendf(nil, `data: <div data-to="transcript" data-drop="%d">`, g.first-sent.first))
	}
	sent.begun, sent.first, sent.next = g.begun, g.first, next
	for _, l := range g.lines[from:] {
		write(l)
	}
	write([]byte(end + "\n\n"))
	return true, err
}
