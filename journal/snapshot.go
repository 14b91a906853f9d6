package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxSnapshotBytes is the largest payload of a snapshot.
	MaxSnapshotBytes = 256 << 20
	// KeptSnapshots is the number of snapshots that are kept, newest first.
	KeptSnapshots = 2

	snapshotPrefix  = "snapshot-"
	snapshotDigits  = 12
	snapshotTemp    = "snapshot.tmp"
	snapshotVersion = 1
	maxSnapshotHead = 1024
)

// snapshot is a file snapshot-<seq>: a first line, then the payload.
type snapshot struct {
	Version int    `json:"snapshot"`
	Seq     int64  `json:"seq"`     // the state after this record
	Start   int64  `json:"start"`   // where that record's line begins in the journal
	End     int64  `json:"end"`     // where replay continues
	Line    string `json:"line"`    // hex SHA-256 of that line
	Size    int    `json:"size"`    // of the payload, in bytes
	Payload string `json:"payload"` // hex SHA-256 of it
	Sum     string `json:"sum,omitempty"`

	payload []byte
}

func snapshotName(seq int64) string {
	return fmt.Sprintf("%s%0*d", snapshotPrefix, snapshotDigits, seq)
}

// snapshotSeqs returns the seqs in the snapshots' names, newest first.
func snapshotSeqs(names []string) []int64 {
	var seqs []int64
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, snapshotPrefix)
		if !ok {
			continue
		}
		if seq, err := strconv.ParseInt(digits, 10, 64); err == nil && seq > 0 && snapshotName(seq) == name {
			seqs = append(seqs, seq)
		}
	}
	slices.SortFunc(seqs, func(a, b int64) int { return cmp.Compare(b, a) })
	return seqs
}

// SaveSnapshot saves payload as the state after record seq; the next Open starts there. On nil it
// is whole on the disk; on an error the older ones are unchanged. A seq not above the newest
// snapshot's is not saved again. An error only costs a slower start.
func (l *Log) SaveSnapshot(seq int64, payload []byte) error {
	if len(payload) > MaxSnapshotBytes {
		return fmt.Errorf("snapshot of record %d: %w: %d bytes are over the limit of %d", seq, ErrRefused, len(payload),
			MaxSnapshotBytes)
	}
	if l.reads {
		return fmt.Errorf("%s: %w", l.name, ErrReading)
	}
	l.snapMu.Lock()
	defer l.snapMu.Unlock()
	at, err := l.find(seq)
	if err != nil {
		return err
	}
	l.mu.Lock()
	old := seq <= l.snap
	l.mu.Unlock()
	if old {
		return nil
	}
	digest := sha256.Sum256(payload)
	head, err := json.Marshal(snapshot{
		Version: snapshotVersion, Seq: seq, Start: at.start, End: at.end, Line: hex.EncodeToString(at.hash[:]),
		Size: len(payload), Payload: hex.EncodeToString(digest[:]),
	})
	if err != nil {
		panic("journal: a snapshot's first line cannot be encoded: " + err.Error())
	}
	head = head[:len(head)-1]
	sum := sha256.Sum256(head)
	head = hex.AppendEncode(append(head, sumKey...), sum[:])
	head = append(head, tailEnd+"\n"...)
	if err := l.writeSnapshot(seq, head, payload); err != nil {
		return fmt.Errorf("snapshot of record %d: not saved: %w: the older ones are as they were", seq, err)
	}
	l.mu.Lock()
	l.snap = seq
	l.mu.Unlock()
	l.prune()
	return nil
}

func (l *Log) writeSnapshot(seq int64, head, payload []byte) error {
	temp := path(l.dir, snapshotTemp)
	f, err := l.fs.Create(temp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(head, 0); err == nil {
		_, err = f.WriteAt(payload, int64(len(head)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = l.fs.Rename(temp, path(l.dir, snapshotName(seq)))
	}
	if err != nil {
		// Best effort: the next snapshot overwrites what is left.
		return errors.Join(err, l.fs.Remove(temp))
	}
	return l.fs.SyncDir(l.dir)
}

func (l *Log) prune() {
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		l.logf("journal: old snapshots stay: %v", err)
		return
	}
	for i, seq := range snapshotSeqs(names) {
		if i < KeptSnapshots {
			continue
		}
		if err := l.fs.Remove(path(l.dir, snapshotName(seq))); err != nil {
			l.logf("journal: an old snapshot stays: %v", err)
		}
	}
}

func (l *Log) find(seq int64) (point, error) {
	from, head, err := l.before(seq)
	if err != nil {
		return from, err
	}
	if seq < 1 || seq > head.seq {
		return from, fmt.Errorf("snapshot of record %d: %w: the journal has records 1 to %d", seq, ErrRefused, head.seq)
	}
	if seq == head.seq {
		return head, nil
	}
	s := newScanner(l.file, l.name, from, head.end)
	for s.at.seq < seq {
		if _, err := s.more(); err != nil {
			return from, err
		}
	}
	return s.at, nil
}

// Snapshot returns the newest good snapshot; the state continues with Replay(seq+1). If there is
// none, or it is no longer readable, ok is false and Replay(1) yields the whole state.
func (l *Log) Snapshot() (seq int64, payload []byte, ok bool) {
	l.mu.Lock()
	seq = l.snap
	l.mu.Unlock()
	if seq == 0 {
		return 0, nil, false
	}
	s, err := readSnapshot(l.fs, l.dir, seq)
	if err != nil {
		l.logf("journal: snapshot ignored: %v", err)
		return 0, nil, false
	}
	return seq, s.payload, true
}

// readSnapshot reads a snapshot and checks all that can be checked without the journal.
func readSnapshot(fsys FS, dir string, seq int64) (*snapshot, error) {
	name := snapshotName(seq)
	f, err := fsys.Open(path(dir, name))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size > MaxSnapshotBytes+maxSnapshotHead {
		return nil, fmt.Errorf("%s: cannot be read: %d bytes: %w", name, size, errors.Join(err, ErrRefused))
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	s, err := parseSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Seq != seq {
		return nil, fmt.Errorf("%s: it is of record %d", name, s.Seq)
	}
	return s, nil
}

func parseSnapshot(data []byte) (*snapshot, error) {
	n := bytes.IndexByte(data[:min(len(data), maxSnapshotHead)], '\n')
	if n < 0 {
		return nil, errors.New("it has no first line")
	}
	if _, err := checkSum(data[:n]); err != nil {
		return nil, err
	}
	s := &snapshot{payload: data[n+1:]}
	if err := json.Unmarshal(data[:n], s); err != nil {
		return nil, fmt.Errorf("its first line is not what it should be: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, fmt.Errorf("its version is %d, and this program reads %d", s.Version, snapshotVersion)
	}
	if s.Seq < 1 || s.Start < 0 || s.End <= s.Start || s.End-s.Start > MaxLineBytes {
		return nil, errors.New("its first line is not what it should be")
	}
	digest := sha256.Sum256(s.payload)
	if s.Size != len(s.payload) || s.Payload != hex.EncodeToString(digest[:]) {
		return nil, errors.New("its payload does not match its sum")
	}
	return s, nil
}

// check checks that the snapshot's record is in the journal, unchanged. If it is not, check reads
// the whole journal to find out what is wrong.
func (s *snapshot) check(f File, name string, size int64) (point, error) {
	if p, ok := s.point(f, size); ok {
		return p, nil
	}
	all := newScanner(f, name, point{}, size)
	for {
		_, err := all.next()
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return point{}, err
		}
		if all.at.seq < s.Seq {
			return point{}, all.damage(shorter(all.at.seq, s.Seq))
		}
		return point{}, &Damage{File: name, Line: s.Seq, Offset: s.Start, Good: all.at.seq,
			Why: another(s.Seq) + ": the journal was replaced or rewritten"}
	}
}

// another says that a snapshot's record is not the one in the journal.
func another(seq int64) string {
	return fmt.Sprintf("record %d is not the one that %s was made after", seq, snapshotName(seq))
}

// point returns the place in the chain that the snapshot names. It returns false if the record
// there is not the one it was made after.
func (s *snapshot) point(f File, size int64) (point, bool) {
	p, ok := pointAt(f, s.Start, s.End, size)
	return p, ok && p.seq == s.Seq && hex.EncodeToString(p.hash[:]) == s.Line
}

// pointAt reads the one record from start to end. It returns false if none is there.
func pointAt(f File, start, end, size int64) (point, bool) {
	if end > size {
		return point{}, false
	}
	line := make([]byte, end-start)
	if n, _ := f.ReadAt(line, start); n < len(line) || line[len(line)-1] != '\n' {
		return point{}, false
	}
	p, err := parseLine(line[:len(line)-1], nil)
	return point{seq: p.seq, start: start, end: end, sum: p.raw, hash: p.line}, err == nil
}
