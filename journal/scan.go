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

// Damage is a journal that cannot be continued: something in it was changed, lost or inserted.
// Nothing was written when it is returned.
type Damage struct {
	File   string // full path
	Line   int64  // of the first break, from 1
	Offset int64  // of that line, in bytes
	Why    string
	Good   int64 // seq of the last good record before it; 0: none
	// Snapshot is the seq of a later snapshot to continue from; 0: none. Only Verify sets it.
	Snapshot int64
}

func (d *Damage) Error() string {
	if d.Snapshot > 0 {
		return d.Past()
	}
	return fmt.Sprintf("%s: damaged at line %d, offset %d: %s: look at it, then cut it back with \"sluice journal "+
		"repair --to %d\" or restore a copy",
		d.File, d.Line, d.Offset, d.Why, d.Good)
}

// Past is the message for damage in records that a snapshot replaces. Runs can continue, so its
// first advice is not to cut the journal back.
func (d *Damage) Past() string {
	return fmt.Sprintf("%s: damaged at line %d, offset %d: %s: runs continue from a snapshot made later, but this part "+
		"of the record cannot be trusted: look at it with \"sluice audit verify\", and restore the file from a copy while "+
		"no daemon runs",
		d.File, d.Line, d.Offset, d.Why)
}

// tail is what follows the last good record: nothing, or an interrupted write.
type tail struct {
	offset int64
	size   int64  // to the end of the file
	data   []byte // the same, without the zeros at its end
}

// scanner reads records from a point on and checks the chain.
type scanner struct {
	file  File
	name  string
	end   int64 // reads no further
	at    point // the last good record
	own   int64 // the caller of next owns records from this seq on; 0: none
	facts []json.RawMessage
	tail  tail // set when next returns io.EOF
	lines *bufio.Reader
	long  []byte // a line longer than the buffer
}

func newScanner(f File, name string, from point, end int64) *scanner {
	return &scanner{file: f, name: name, end: end, at: from, lines: section(f, from.end, end)}
}

// section returns a reader of a part of f. A short part needs only a small buffer.
func section(f File, from, to int64) *bufio.Reader {
	n := max(to-from, 0)
	return bufio.NewReaderSize(io.NewSectionReader(f, from, n), int(min(n+1, readBufferBytes)))
}

func (s *scanner) damage(why string) *Damage {
	return &Damage{File: s.name, Line: s.at.seq + 1, Offset: s.at.end, Why: why, Good: s.at.seq}
}

// next returns the next record, valid until the next call unless the caller owns it. At the end it
// returns io.EOF and sets tail. After a *Damage the scanner is where it was.
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

// more is next where another record is known to be there.
func (s *scanner) more() (parsed, error) {
	p, err := s.next()
	if errors.Is(err, io.EOF) {
		return p, s.damage("the journal is shorter than it was")
	}
	return p, err
}

// readLine returns a line without its newline. whole is false for the rest at the end and for a
// line over the limit.
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
			return nil, false, fault.New("check the disk", "%s: cannot be read: %w", s.name, err)
		}
		if s.long = append(s.long, part...); len(s.long) > MaxLineBytes {
			return s.long, false, nil
		}
	}
}

// finish judges what follows the last whole line. A torn write has no newline; a power cut may
// leave zeros where data was not written.
func (s *scanner) finish() error {
	data, err := s.readTail()
	if err != nil {
		return err
	}
	s.tail = tail{offset: s.at.end, size: s.end - s.at.end, data: data}
	if len(data) == 0 {
		return io.EOF
	}
	// A whole good record followed by something other than a newline was not interrupted: its
	// newline was changed.
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil && len(first) < len(data) &&
		bytes.HasPrefix(data, first) {
		if _, err := parseLine(first, nil); err == nil {
			return s.damage("something else than a newline follows the record")
		}
	}
	return io.EOF
}

// readTail reads from the last good record to the end and drops trailing zeros, of which there may
// be any number. If the rest is longer than a line, it is damage.
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
			return nil, fault.New("check the disk", "%s: cannot be read: %w", s.name, err)
		}
	}
}
