package patch

import (
	"fmt"
	"io"
	"strconv"

	"sluice/web/visible"
)

// Limits of a page.
const (
	MaxFiles  = 100        // files whose lines are shown
	MaxBytes  = 500 * 1000 // of HTML with lines
	MaxListed = 1000       // files that are named without their lines

	fullBytes = 2000 // with no more room than this a page is full
)

// Options say how a diff is shown.
type Options struct {
	// Query begins the query of each link, as in "since=1"; "" = nothing. Links are relative: they lead
	// to the page that the HTML is in.
	Query string
	// Colour returns the colours of a file before and after the change. It is asked once for each file
	// with lines that is written. nil = none.
	Colour func(*Change) (old, now Colours)
	// Below appends the page's own rows below a line, such as its comments: whole <tr> of three cells.
	Below func(dst []byte, c *Change, at ID) []byte
	// Open is a file that Page shows whatever room there is, as much as MaxBytes of it from row From on;
	// 0 = none.
	Open, From int

	base []byte // of a link, as far as all have it in common
}

// start appends the start of a link to the page that the HTML is in, up to the hash. The query and
// the hash are ours, without what would have to be escaped.
func (o *Options) start(dst []byte, key, value, more, hash string) []byte {
	if o.base == nil {
		o.base = []byte(`<a href="?`)
		if o.Query != "" {
			o.base = append(o.base, visible.String(o.Query)+"&amp;"...)
		}
	}
	dst = append(append(append(append(dst, o.base...), key...), '='), value...)
	return append(append(append(append(dst, more...), '#'), hash...), '"')
}

// link appends a link with a class, for rows or text beside those that are there.
func (o *Options) link(dst []byte, class, key, value, more, hash, text string) []byte {
	dst = append(append(append(o.start(dst, key, value, more, hash), ` class="`...), class...), `">`...)
	return append(append(dst, visible.String(text)...), "</a>"...)
}

// Summary counts what a diff has and what of it a page shows.
type Summary struct {
	Files          int
	Shown          int // with their lines
	Listed         int // without their lines
	Added, Removed int // lines of all files
}

// Page writes a diff: the lines of as many files as there is room for, the others in their places as
// links (?open=f3#f3, class open) that open them: File writes what they lead to. Of files without a
// place at the end it writes how many there are, with a link to a List. It reads the whole diff, to
// count.
func Page(w io.Writer, r io.Reader, o Options) (Summary, error) {
	p := &page{w: w, o: &o, first: 1, room: MaxBytes}
	err := p.read(r)
	return p.sum, err
}

// List writes files without their lines, from file first on.
func List(w io.Writer, r io.Reader, first int, o Options) (Summary, error) {
	p := &page{w: w, o: &o, first: max(first, 1)}
	err := p.read(r)
	return p.sum, err
}

type page struct {
	w     io.Writer
	o     *Options
	first int // the first file that is named
	room  int // bytes left for lines
	sum   Summary
	body  *body
	left  Summary // files that are not named
}

func (p *page) read(r io.Reader) error {
	s := newScanner(r)
	var file *Change
	for {
		is, err := s.next()
		if err != nil {
			return err
		}
		if s.file != file || is == atEnd {
			if file != nil {
				if err := p.done(file); err != nil {
					return err
				}
			}
			if file = s.file; is == atEnd {
				return p.end()
			}
			p.begin(file)
		}
		if p.body != nil {
			if err := p.body.take(s, is); err != nil {
				return err
			}
		}
	}
}

func (p *page) begin(c *Change) {
	p.body = nil
	switch {
	case c.N == p.o.Open:
		p.body = &body{o: p.o, file: c, most: MaxBytes, from: max(p.o.From, 0)}
	case p.room > fullBytes && p.sum.Shown < MaxFiles:
		p.body = &body{o: p.o, file: c, most: p.room}
	}
}

func (p *page) done(c *Change) error {
	p.sum.Files++
	p.sum.Added += c.Added
	p.sum.Removed += c.Removed
	b := p.body
	if b != nil {
		b.flush()
	}
	if b != nil && (b.next == 0 || c.N == p.o.Open) {
		p.sum.Shown++
		if c.N != p.o.Open {
			p.room -= len(b.out)
		}
		return b.write(p.w)
	}
	if c.N < p.first {
		return nil
	}
	if p.sum.Listed == MaxListed {
		p.left.Files++
		p.left.Added += c.Added
		p.left.Removed += c.Removed
		return nil
	}
	p.sum.Listed++
	out := append([]byte(`<div class="file" id="`), ID{File: c.N}.String()...)
	out = append(out, `">`...)
	at := ID{File: c.N}.String()
	out = p.o.link(out, "open", "open", at, "", at, name(c))
	out = append(facts(counts(out, c.Added, c.Removed), c), "</div>\n"...)
	_, err := p.w.Write(out)
	return err
}

func (p *page) end() error {
	if p.left.Files == 0 {
		return nil
	}
	first := strconv.Itoa(p.sum.Files - p.left.Files + 1)
	out := p.o.link([]byte(`<div class="file">`), "list", "list", first, "", "f"+first,
		fmt.Sprintf("%d more files", p.left.Files))
	out = append(counts(out, p.left.Added, p.left.Removed), "</div>\n"...)
	_, err := p.w.Write(out)
	return err
}

// File writes one file, from a row on: as much as MaxBytes of it, with links to the rows before and
// after. It returns ErrNone if the diff has no file n.
func File(w io.Writer, r io.Reader, n, row int, o Options) (Change, error) {
	s := newScanner(r)
	var b *body
	for {
		is, err := s.next()
		if err != nil {
			return Change{}, err
		}
		if is == atEnd || s.file.N > n {
			break
		}
		if s.file.N < n {
			continue
		}
		if b == nil {
			b = &body{o: &o, file: s.file, most: MaxBytes, from: max(row, 0)}
		}
		if err := b.take(s, is); err != nil {
			return Change{}, err
		}
	}
	if b == nil {
		return Change{}, ErrNone
	}
	b.flush()
	return *b.file, b.write(w)
}

// write writes the file: a <details> with its name, its facts and its rows.
func (b *body) write(w io.Writer) error {
	at := ID{File: b.file.N}.String()
	out := append([]byte(`<details class="file" open id="`), at...)
	out = append(append(out, `"><summary><span class="path">`...), visible.String(name(b.file))...)
	out = append(counts(append(out, "</span>"...), b.file.Added, b.file.Removed), "</summary>\n"...)
	out = facts(out, b.file)
	if before := min(b.from, b.rows); before > 0 {
		out = b.part(out, "", fmt.Sprintf("%d rows before these", before))
	}
	if len(b.out) > 0 {
		out = append(append(out, `<table class="diff" dir="ltr" aria-label="Changes of `...), visible.String(name(b.file))...)
		out = append(out, `"><thead><tr><th scope="col" class="o"><span class="hide">Before</span></th>`+
			`<th scope="col" class="n"><span class="hide">After</span></th>`+
			`<th scope="col"><span class="hide">Text</span></th></tr></thead><tbody>`+"\n"...)
	}
	if _, err := w.Write(out); err != nil {
		return err
	}
	if _, err := w.Write(b.out); err != nil {
		return err
	}
	out = out[:0]
	if len(b.out) > 0 {
		out = append(out, "</tbody></table>\n"...)
	}
	if b.next > 0 {
		out = b.part(out, from(int64(b.next)), fmt.Sprintf("%d rows after these", b.rows-b.next))
	}
	_, err := w.Write(append(out, "</details>\n"...))
	return err
}

func facts(dst []byte, c *Change) []byte {
	for _, fact := range c.Facts() {
		dst = append(append(append(dst, `<p class="fact">`...), visible.String(fact)...), "</p>\n"...)
	}
	return dst
}

// part appends a link to other rows of the file.
func (b *body) part(dst []byte, more, text string) []byte {
	at := ID{File: b.file.N}.String()
	dst = b.o.link(append(dst, `<p class="part">`...), "open", "open", at, more, at, text)
	return append(dst, "</p>\n"...)
}

// from is the part of a link that says from which byte or row on.
func from(n int64) string { return "&amp;from=" + strconv.FormatInt(n, 10) }

// name returns the file's name, as much of it as fits.
func name(c *Change) string {
	if c.Path == "" {
		return "a file without a name"
	}
	if short := clip([]byte(c.Path), maxName); len(short) < len(c.Path) {
		return fmt.Sprintf("%s… (%d bytes more)", short, len(c.Path)-len(short))
	}
	return c.Path
}

func counts(dst []byte, added, removed int) []byte {
	return fmt.Appendf(dst, ` <span class="counts"><b class="add">+%d</b> <b class="del">−%d</b></span>`, added, removed)
}
