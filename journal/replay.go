package journal

import (
	"fmt"
	"sort"
)

// before returns the latest known point that is not after seq, and the head.
func (l *Log) before(seq int64) (from, head point, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return from, head, err
	}
	if n := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].seq > seq }); n > 0 {
		from = l.marks[n-1]
	}
	return from, l.head, nil
}

// ReadOn takes in what another Log has appended to a journal that OpenRead has opened, and calls fn with
// each record, which fn owns; fn does not call the Log. After an error open the journal again: the file
// may not continue what was read, as after a repair.
func (l *Log) ReadOn(fn func(Record) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(); err != nil {
		return err
	}
	f, size, err := openSized(l.fs, l.name)
	if err != nil {
		return err
	}
	defer f.Close()
	s := newScanner(f, l.name, l.head, size)
	if l.head.seq > 0 {
		if p, ok := pointAt(f, l.head.start, l.head.end, size); !ok || p != l.head {
			return s.damage("the journal was changed since it was opened")
		}
	}
	s.own = l.head.seq + 1
	if err := l.scan(s, fn); err != nil {
		return err
	}
	l.head = s.at
	return nil
}

// Replay calls fn with every record from seq `from` to the last one when Replay began, in order,
// and checks the chain. fn owns its record. An error from fn stops it and is returned unchanged. It
// may run beside appends, and keeps only one line in memory.
func (l *Log) Replay(from int64, fn func(Record) error) error {
	start, head, err := l.before(max(from, 1) - 1)
	if err != nil || from > head.seq || head.seq == 0 {
		return err
	}
	f, err := l.fs.Open(l.name)
	if err != nil {
		return fmt.Errorf("%s: cannot be read: %w", l.name, err)
	}
	defer f.Close()
	s := newScanner(f, l.name, start, head.end)
	s.own = max(from, 1)
	for s.at.seq < head.seq {
		p, err := s.more()
		if err != nil {
			return err
		}
		if p.seq < from {
			continue
		}
		if err := fn(p.record()); err != nil {
			return err
		}
	}
	if s.at.hash != head.hash {
		return s.damage("the journal was changed since it was opened")
	}
	return nil
}
