package patch

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf8"
)

// readBytes is how much is read at once; a line's head is within it.
const readBytes = 64 << 10

// lines reads lines of any length in pieces.
type lines struct {
	in   *bufio.Reader
	left bool  // of the line there is more to read
	size int64 // bytes of the line that were read, without its end
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, readBytes)} }

// next returns the first piece of the next line, without the line end. It holds until the next call.
func (l *lines) next() ([]byte, error) {
	if _, err := l.drain(); err != nil {
		return nil, err
	}
	l.size = 0
	piece, err := l.piece()
	if len(piece) == 0 && !l.left && errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	return piece, ignoreEnd(err)
}

// more returns the next piece of the line; empty = it has ended.
func (l *lines) more() ([]byte, error) {
	if !l.left {
		return nil, nil
	}
	piece, err := l.piece()
	return piece, ignoreEnd(err)
}

// drain reads the line to its end and returns its size.
func (l *lines) drain() (int64, error) {
	for l.left {
		if _, err := l.more(); err != nil {
			return l.size, err
		}
	}
	return l.size, nil
}

func (l *lines) piece() ([]byte, error) {
	piece, err := l.in.ReadSlice('\n')
	l.left = errors.Is(err, bufio.ErrBufferFull)
	if n := len(piece); n > 0 && piece[n-1] == '\n' {
		l.size += int64(n - 1)
		return piece[:n-1], nil
	}
	l.size += int64(len(piece))
	if l.left {
		err = nil
	}
	return piece, err
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// clip returns at most the first most bytes of a line, without a part of a character at their end.
func clip(line []byte, most int) []byte {
	if len(line) <= most {
		return line
	}
	for at := most; at > most-utf8.UTFMax && at >= 0; at-- {
		if utf8.RuneStart(line[at]) {
			if _, size := utf8.DecodeRune(line[at:]); at+size > most {
				return line[:at]
			}
			break
		}
	}
	return line[:most]
}
