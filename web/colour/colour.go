// Package colour tells which parts of a source file are keywords, strings, comments and the like. It is
// the one place that knows chroma, and reads a language when a file of it is first opened. Go it reads
// with the scanner of the standard library.
//
// Classes: k keyword, s string, m number, c comment, f function, n another name that the language or
// the file defines.
package colour

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sluice/web/visible"
)

// Limits.
const (
	MaxLines = 2000      // of a file that are coloured
	MaxBytes = 256 << 10 // of a file that are coloured
	maxLine  = 10_000    // bytes; a file is coloured up to a longer line
	maxSpans = 200_000   // in the cache, about 40 bytes each
	maxFiles = 500       // in the cache
	maxTime  = 2 * time.Second
)

// Lines are the coloured parts of a file's lines, from the first.
type Lines [][]visible.Span

// At returns the coloured parts of a line, from 1; nil = none.
func (l Lines) At(line int) []visible.Span {
	if line < 1 || line > len(l) {
		return nil
	}
	return l[line-1]
}

// Key names the content of a file: a blob that is named without doubt (a whole object name, or one with
// its repo), and the path, which tells the language.
type Key struct{ Blob, Path string }

// Painter colours one file at a time and keeps the latest ones. Use New.
type Painter struct {
	turn chan struct{} // taken by whoever colours

	mu    sync.Mutex
	kept  map[Key]Lines
	order []Key // the one that was asked for least lately first
	spans int

	languages func() *languages
}

// New returns a Painter. It costs nothing until a file is coloured.
func New() *Painter {
	return &Painter{turn: make(chan struct{}, 1), kept: map[Key]Lines{}, languages: sync.OnceValue(load)}
}

// Lines returns the colours of a file; none if its language is not known, or if it is no text. source
// returns its content, and is asked if that is not known yet. Of a large file the first lines are
// coloured. The error is of source, or of ctx while another file is coloured.
func (p *Painter) Lines(ctx context.Context, k Key, source func(context.Context) ([]byte, error)) (Lines, error) {
	if l, ok := p.known(k); ok {
		return l, nil
	}
	if !p.languages().know(path.Base(k.Path)) {
		return nil, nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turn }()
	if l, ok := p.known(k); ok { // another one asked for it too
		return l, nil
	}
	text, err := source(ctx)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, maxTime)
	defer stop()
	l := p.languages().lines(limited, path.Base(k.Path), first(text))
	if ctx.Err() == nil { // else it is what was done until the caller went
		p.keep(k, l)
	}
	return l, nil
}

// first returns the part of a file that is coloured.
func first(text []byte) string {
	s := string(text[:min(len(text), MaxBytes)])
	n, lines := 0, 0
	for line := range strings.Lines(s) {
		if lines++; lines > MaxLines || len(line) > maxLine {
			break
		}
		n += len(line)
	}
	if s = s[:n]; !utf8.ValidString(s) {
		return ""
	}
	return s
}

func (p *Painter) known(k Key) (Lines, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.kept[k]
	if ok {
		p.touch(k)
	}
	return l, ok
}

// touch makes a key the latest.
func (p *Painter) touch(k Key) {
	for i, other := range p.order {
		if other == k {
			p.order = append(append(p.order[:i:i], p.order[i+1:]...), k)
			return
		}
	}
	p.order = append(p.order, k)
}

func (p *Painter) keep(k Key, l Lines) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[k] = l
	p.touch(k)
	p.spans += l.size()
	for len(p.order) > 1 && (p.spans > maxSpans || len(p.order) > maxFiles) {
		old := p.order[0]
		p.spans -= p.kept[old].size()
		delete(p.kept, old)
		p.order = p.order[1:]
	}
}

func (l Lines) size() int {
	n := len(l)
	for _, spans := range l {
		n += len(spans)
	}
	return n
}

// splitter makes lines of coloured parts that may go over several.
type splitter struct {
	out  Lines
	line []visible.Span
	at   int // bytes of the line so far
}

// add takes the next part of the text.
func (s *splitter) add(text, class string) {
	for {
		line, rest, more := strings.Cut(text, "\n")
		if last := len(s.line) - 1; class != "" && line != "" {
			if last >= 0 && s.line[last].To == s.at && s.line[last].Class == class {
				s.line[last].To += len(line)
			} else {
				s.line = append(s.line, visible.Span{From: s.at, To: s.at + len(line), Class: class})
			}
		}
		s.at += len(line)
		if !more {
			return
		}
		s.end()
		text = rest
	}
}

func (s *splitter) end() {
	s.out = append(s.out, s.line)
	s.line, s.at = nil, 0
}
