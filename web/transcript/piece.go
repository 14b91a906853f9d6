package transcript

import (
	"bytes"
	"errors"
	"io"

	"sluice/agents/program"
)

// maxScan is how far the border of a long line is looked for. A line that is longer is cut there.
const maxScan = program.MaxLine

// maxLong is the size of a line that is still read.
const maxLong = 1 << 20

// End returns the newest part of the output. It returns an error that wraps fs.ErrNotExist if there
// is no output yet.
func (o Output) End() (Piece, error) {
	return o.with(func(files []file) (Piece, error) { return o.end(files, sayer(o.Format)) })
}

// Before returns what comes before a place.
func (o Output) Before(p Pos) (Piece, error) {
	return o.around(p, o.before)
}

// After returns what comes after a place; nothing if that is the end.
func (o Output) After(p Pos) (Piece, error) {
	return o.around(p, o.after)
}

// with calls read with the open files.
func (o Output) with(read func([]file) (Piece, error)) (Piece, error) {
	files, done, err := o.open()
	if err != nil {
		return Piece{}, err
	}
	defer done()
	return read(files)
}

// around reads at a place or, if that is not there any more, the end.
func (o Output) around(p Pos, read func(files []file, i int, at int64, say func(raw) []Line) (Piece, error)) (Piece,
	error) {
	return o.with(func(files []file) (Piece, error) {
		if i := find(files, p); i >= 0 {
			return read(files, i, p.at, sayer(o.Format))
		}
		piece, err := o.end(files, sayer(o.Format))
		piece.Gap = true
		return piece, err
	})
}

// find returns the file in which the place is, or -1.
func find(files []file, p Pos) int {
	for i, f := range files {
		if f.number == p.file && p.at <= f.size {
			return i
		}
	}
	return -1
}

func (o Output) end(files []file, say func(raw) []Line) (Piece, error) {
	return o.before(files, len(files)-1, files[len(files)-1].size, say)
}

// before returns the lines of file i that end at or before a byte.
func (o Output) before(files []file, i int, end int64, say func(raw) []Line) (p Piece, err error) {
	f := files[i]
	if end == f.size && !f.done { // its last line has not ended
		border, err := f.back(end)
		if err != nil {
			return p, err
		}
		if end-border < maxScan {
			end = border
		}
	}
	if end == 0 && i > 0 {
		p, err := o.before(files, i-1, files[i-1].size, say)
		if f.gap {
			p.Lines = append(p.Lines, f.skipped())
		}
		return p, err
	}
	p.Later, p.More = f.pos(end), end < f.size || !f.last
	if end == 0 {
		return p, nil
	}
	lines, err := f.readBack(end)
	if err != nil || len(lines) == 0 {
		return p, err
	}
	if first := lines[0].at; first.at > 0 || i > 0 {
		p.Earlier = &first
	}
	p.fill(say, lines, true)
	return p, nil
}

// after returns the lines of file i from a byte on.
func (o Output) after(files []file, i int, from int64, say func(raw) []Line) (p Piece, err error) {
	f := files[i]
	if from == f.size && i+1 < len(files) {
		return o.after(files, i+1, 0, say)
	}
	if from > 0 || i > 0 {
		earlier := f.pos(from)
		p.Earlier = &earlier
	}
	if from == 0 && f.gap {
		p.Lines = append(p.Lines, f.skipped())
	}
	lines, to, err := f.readOn(from)
	if err != nil {
		return p, err
	}
	p.Later, p.More = f.pos(to), len(lines) > 0 && to < f.size || !f.last
	p.fill(say, lines, false)
	return p, nil
}

func (f *file) pos(at int64) Pos { return Pos{f.number, at} }

func (f *file) skipped() Line {
	return Line{At: f.pos(0), Kind: Note, HTML: "output may be left out here"}
}

// read returns bytes of the file, fewer at its end.
func (f *file) read(from, to int64) ([]byte, error) {
	buf := make([]byte, max(to-from, 0))
	n, err := f.f.ReadAt(buf, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:n], err
}

// back returns the start of the line that ends at a byte, which is not its line end; if the line is
// too long, a byte within it.
func (f *file) back(end int64) (int64, error) {
	for to := end; to > 0 && end-to < maxScan; {
		from := max(to-MaxBytes/4, 0)
		buf, err := f.read(from, to)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		to = from
	}
	return max(end-maxScan, 0), nil
}

// lineEnd returns where the line that has a byte ends, after its line end. If it is too long, or has
// not ended, that is where the search ended.
func (f *file) lineEnd(from int64) (end int64, ended bool, err error) {
	for at := from; at < f.size && at-from < maxScan; {
		buf, err := f.read(at, min(at+MaxBytes/4, f.size))
		if err != nil || len(buf) == 0 {
			return at, false, err
		}
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			return at + int64(i) + 1, true, nil
		}
		at += int64(len(buf))
	}
	return min(from+maxScan, f.size), false, nil
}

// readBack returns the lines in the last bytes before end: at least one.
func (f *file) readBack(end int64) ([]raw, error) {
	start := max(end-MaxBytes, 0)
	buf, err := f.read(max(start-1, 0), end)
	if err != nil {
		return nil, err
	}
	if start > 0 { // the line that began before it is not whole
		i := bytes.IndexByte(buf, '\n')
		if i < 0 || i == len(buf)-1 {
			return f.long(end)
		}
		start, buf = start+int64(i), buf[i+1:]
	}
	return f.cut(start, buf), nil
}

// long returns the one line that ends at end and is longer than a piece.
func (f *file) long(end int64) ([]raw, error) {
	text := end
	if last, err := f.read(end-1, end); err != nil {
		return nil, err
	} else if string(last) == "\n" {
		text--
	}
	start, err := f.back(text)
	if err != nil {
		return nil, err
	}
	return f.one(start, text)
}

// one returns a line that is longer than a piece, with its text if that is not much longer.
func (f *file) one(from, to int64) ([]raw, error) {
	l := raw{at: f.pos(from), size: to - from}
	var err error
	if l.size <= maxLong {
		l.text, err = f.read(from, to)
	}
	return []raw{l}, err
}

// readOn returns the lines from a border on, and where they end: only those that have ended, unless
// the file has.
func (f *file) readOn(from int64) ([]raw, int64, error) {
	buf, err := f.read(from, min(from+MaxBytes, f.size))
	if err != nil {
		return nil, from, err
	}
	whole := bytes.LastIndexByte(buf, '\n') + 1
	atEnd := from+int64(len(buf)) == f.size
	switch {
	case atEnd && f.done:
		whole = len(buf)
	case whole == 0 && atEnd:
		return nil, from, nil
	case whole == 0:
		end, ended, err := f.lineEnd(from)
		if err != nil || !ended && !f.done && end-from < maxScan {
			return nil, from, err
		}
		size := end - from
		if ended {
			size--
		}
		lines, err := f.one(from, from+size)
		return lines, end, err
	}
	return f.cut(from, buf[:whole]), from + int64(whole), nil
}

// cut returns the lines of some bytes.
func (f *file) cut(from int64, buf []byte) (out []raw) {
	for line := range bytes.Lines(buf) {
		at := f.pos(from)
		from += int64(len(line))
		line = bytes.TrimSuffix(line, []byte("\n"))
		out = append(out, raw{at: at, text: line, size: int64(len(line))})
	}
	return out
}
