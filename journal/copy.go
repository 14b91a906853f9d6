package journal

import (
	"bufio"
	"bytes"
	"errors"

	"sluice/internal/fault"
)

// Copy begins to send the lines after record `before` to another place that keeps the journal, and
// returns at once. wait returns nil once that place has acknowledged exactly these lines. Its error
// is final for the Log: the file has lines then that the other place may not have, and a new start
// compares the two. Only one group of lines is on its way at a time. lines is valid until wait
// returns; wait is not called when the file's own write has failed.
type Copy func(lines []byte, before int64) (wait func() error)

// writeBoth writes whole lines to the file and to the copy at the same time. It returns nil once
// both have them.
func (l *Log) writeBoth(buf []byte) error {
	if l.copy == nil {
		return l.writeFile(buf)
	}
	wait := l.copy(buf, l.head.seq)
	if err := l.writeFile(buf); err != nil {
		l.buf = nil // the copy may still read it
		return fault.New("check the disk; the next start adds what the copy has", "%w: %v", ErrApart, err)
	}
	return wait()
}

// AppendLines appends lines as another process has written them, with their newlines, after checking
// each and the chain. They do not go to the copy. On an error none of them is in the journal, except
// for ErrSyncFailed; a *Damage means that the lines do not continue this journal.
func (l *Log) AppendLines(lines []byte) error {
	l.mu.Lock()
	for l.leading {
		l.idle.Wait()
	}
	if err := l.refusal(); err != nil {
		l.mu.Unlock()
		return err
	}
	l.leading = true
	l.mu.Unlock()

	head, marks, err := l.checkLines(lines)
	if err == nil {
		if err = l.ready(); err == nil {
			err = l.writeFile(lines)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = false
	l.idle.Broadcast()
	if err == nil {
		l.head, l.marks = head, append(l.marks, marks...)
	}
	return err
}

// checkLines reads lines as the continuation of the journal.
func (l *Log) checkLines(lines []byte) (head point, marks []point, err error) {
	s := &scanner{name: l.name, at: l.head, end: l.head.end + int64(len(lines)),
		lines: bufio.NewReader(bytes.NewReader(lines))}
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return head, nil, s.damage("what continues it does not end in a newline")
	}
	for s.at.end < s.end {
		if _, err := s.next(); err != nil {
			return head, nil, err
		}
		if s.at.seq%markEvery == 0 {
			marks = append(marks, s.at)
		}
	}
	return s.at, marks, nil
}

// Lines returns the lines from record `from` on, with their newlines: at most `most` bytes, but at
// least one line, and none after the last record. last is the seq of the last of them.
func (l *Log) Lines(from int64, most int) (lines []byte, last int64, err error) {
	start := point{}
	if from > 1 {
		if start, err = l.find(from - 1); err != nil {
			return nil, 0, err
		}
	}
	_, head, err := l.before(from)
	if err != nil || start.seq >= head.seq {
		return nil, start.seq, err
	}
	s := newScanner(l.file, l.name, start, head.end)
	end := start
	for s.at.seq < head.seq {
		if _, err := s.more(); err != nil {
			return nil, 0, err
		}
		if end.seq > start.seq && s.at.end-start.end > int64(most) {
			break
		}
		end = s.at
	}
	lines = make([]byte, end.end-start.end)
	if n, err := l.file.ReadAt(lines, start.end); n < len(lines) {
		return nil, 0, fault.New("check the disk", "%s: cannot be read: %w", l.name, err)
	}
	return lines, end.seq, nil
}

// ParseLines reads lines, with their newlines, that may stand anywhere in a journal. It checks each
// line's own sum and form.
func ParseLines(lines []byte) ([]Record, error) {
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return nil, errors.New("it does not end in a newline")
	}
	var out []Record
	for line := range bytes.Lines(lines) {
		p, err := parseLine(line[:len(line)-1], nil)
		if err != nil {
			return nil, err
		}
		out = append(out, p.record())
	}
	return out, nil
}
