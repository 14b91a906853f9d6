package journal

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sluice/internal/fault"
)

const readBufferBytes = 256 << 10

// Damage is a journal that cannot be gone on with: something in it was changed,
// lost or put in. Nothing was written when it is returned.
type Damage struct {
	File   string // full path
	Line   int64  // of the first break, from 1
	Offset int64  // of that line, in bytes
	Why    string
	Good   int64 // seq of the last good record before it; 0 if there is none
	// Snapshot is of a record behind it, and can be gone on from: Verify tells. 0 = there is none.
	Snapshot int64
}

func (d *Damage) Error() string {
	if d.Snapshot > 0 {
		return d.Past()
	}
	return fmt.Sprintf("%s: damaged at line %d, offset %d: %s: look at it, then cut it back with \"sluice journal repair --to %d\" or restore a copy",
		d.File, d.Line, d.Offset, d.Why, d.Good)
}

// Past is what to say of damage in records that a snapshot stands for: the
// journal can be gone on with, so cutting it back is not the first advice.
func (d *Damage) Past() string {
	return fmt.Sprintf("%s: damaged at line %d, offset %d: %s: runs go on from a snapshot made later, but this part of the record cannot be trusted: look at it with \"sluice audit verify\", and restore the file from a copy while no daemon runs",
		d.File, d.Line, d.Offset, d.Why)
}

// tail is what follows the last good record: nothing, or a write that was
// interrupted.
type tail struct {
	offset int64
	size   int64  // to the end of the file
	data   []byte // the same without the zeros at its end
}

// scanner reads records from a point on and holds each to the chain.
type scanner struct {
	file  File
	name  string
	end   int64 // reads no further
	at    point // the last good record
	own   int64 // records from this seq on belong to the caller of next; 0: none does
	facts []json.RawMessage
	tail  tail // set when next returns io.EOF
	lines *bufio.Reader
	long  []byte // a line longer than the buffer
}

func newScanner(f File, name string, from point, end int64) *scanner {
	return &scanner{file: f, name: name, end: end, at: from, lines: section(f, from.end, end)}
}

// section reads a part of f; a short part costs a small buffer.
func section(f File, from, to int64) *bufio.Reader {
	n := max(to-from, 0)
	return bufio.NewReaderSize(io.NewSectionReader(f, from, n), int(min(n+1, readBufferBytes)))
}

func (s *scanner) damage(why string) *Damage {
	return &Damage{File: s.name, Line: s.at.seq + 1, Offset: s.at.end, Why: why, Good: s.at.seq}
}

// next returns the next record; it is good until the next call, unless it is
// the caller's own. At the end it returns io.EOF and sets tail. A *Damage leaves the scanner where it was.
func (s *scanner) next() (parsed, error) {
	line, whole, err := s.readLine()
	if err != nil {
		return parsed{}, err
	}
	if !whole {
		return parsed{}, s.finish()
	}
	facts := s.facts
	if s.own > 0 && s.at.seq+1 >= s.own {
		line, facts = bytes.Clone(line), nil
	}
	p, err := parseLine(line, facts)
	if err != nil {
		return p, s.damage(err.Error())
	}
	if p.seq != s.at.seq+1 {
		return p, s.damage(fmt.Sprintf("seq %d where %d should be: a line was lost, doubled or moved", p.seq, s.at.seq+1))
	}
	if string(p.prev) != hex.EncodeToString(s.at.hash[:]) {
		return p, s.damage("\"prev\" is not the hash of the line before: one of the two was changed")
	}
	s.facts = p.facts
	s.at = point{seq: p.seq, start: s.at.end, end: s.at.end + int64(len(line)) + 1, sum: p.raw, hash: p.line}
	return p, nil
}

// readLine returns a line without its newline. whole is false for what is left
// at the end, and for a line over the limit.
func (s *scanner) readLine() (line []byte, whole bool, err error) {
	s.long = s.long[:0]
	for {
		part, err := s.lines.ReadSlice('\n')
		switch {
		case err == nil && len(s.long) == 0:
			return part[:len(part)-1], true, nil
		case err == nil:
			s.long = append(s.long, part[:len(part)-1]...)
			return s.long, len(s.long) < MaxLineBytes, nil
		case errors.Is(err, io.EOF):
			return nil, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, fault.New("see to the disk", "%s: cannot be read: %w", s.name, err)
		}
		if s.long = append(s.long, part...); len(s.long) > MaxLineBytes {
			return s.long, false, nil
		}
	}
}

// finish judges what is left after the last whole line. A torn write has no
// newline; a power cut may leave zeros in the place of what was not written.
func (s *scanner) finish() error {
	data, err := s.readTail()
	if err != nil {
		return err
	}
	s.tail = tail{offset: s.at.end, size: s.end - s.at.end, data: data}
	if len(data) == 0 {
		return io.EOF
	}
	// A whole good record with something else than a newline after it was not
	// interrupted: its newline was changed.
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil && len(first) < len(data) && bytes.HasPrefix(data, first) {
		if _, err := parseLine(first, nil); err == nil {
			return s.damage("something else than a newline follows the record")
		}
	}
	return io.EOF
}

// readTail reads from the last good record to the end, and drops the zeros at
// the end. There may be any number of those; of the rest there is at most a
// line, or it is damage.
func (s *scanner) readTail() ([]byte, error) {
	src := section(s.file, s.at.end, s.end)
	var data []byte
	zeros := 0
	for {
		chunk, err := src.Peek(src.Size())
		trimmed := bytes.TrimRight(chunk, "\x00")
		if len(trimmed) > 0 {
			if len(data)+zeros+len(trimmed) > MaxLineBytes {
				return nil, s.damage(fmt.Sprintf("the line is longer than %d bytes", MaxLineBytes))
			}
			data = append(append(data, make([]byte, zeros)...), trimmed...)
			zeros = 0
		}
		zeros += len(chunk) - len(trimmed)
		if _, dropErr := src.Discard(len(chunk)); err == nil {
			err = dropErr
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, fault.New("see to the disk", "%s: cannot be read: %w", s.name, err)
		}
	}
}
