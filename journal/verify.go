package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Report is what Verify found.
type Report struct {
	Records int64 // good ones
	Bytes   int64 // of the good ones
	LastSum string
	Epoch   int64 // of the newest lead; 0: this machine alone has always decided
	Left    bool  // a machine has left since: it goes on alone
	// PartialBytes follow the last good record and are not a record yet: a running write, or one
	// that a crash interrupted. They are no damage.
	PartialBytes int64
	Snapshots    []int64  // whole, and of a record in the journal
	Ignored      []string // the others, each with its reason; they only cost a slower start
}

// Checkpoint is a record noted elsewhere, out of reach of anyone who could rewrite the journal.
// Only a checkpoint reveals a lost end.
type Checkpoint struct {
	Seq int64
	Sum string
}

// Verify reads the whole journal in dir and checks every sum, the chain, the snapshots and the
// checkpoints. It returns a *Damage for the first break; the Report then describes what precedes
// it. It writes nothing and may run beside the daemon.
func Verify(dir string, opt Options, checkpoints ...Checkpoint) (Report, error) {
	fsys, name := opt.fs(), path(dir, FileName)
	var rep Report
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be read: %w", dir, err)
	}
	// Read before the journal, so that the journal has the records they were made after.
	var snaps []*snapshot
	for _, seq := range snapshotSeqs(names) {
		if s, err := readSnapshot(fsys, dir, seq); err != nil {
			rep.Ignored = append(rep.Ignored, err.Error())
		} else {
			s.payload = nil
			snaps = append(snaps, s)
		}
	}
	want := make(map[int64]string, len(checkpoints))
	highest := int64(0)
	for _, c := range checkpoints {
		if other, ok := want[c.Seq]; ok && other != c.Sum || c.Seq < 1 {
			return rep, fmt.Errorf("checkpoint %d: there are two of it, or it is no record", c.Seq)
		}
		want[c.Seq] = c.Sum
		highest = max(highest, c.Seq)
	}
	s, err := readAll(fsys, name, func(s *scanner, p *parsed) error {
		if err := rep.leads(s, p); err != nil {
			return err
		}
		return checkPoint(s, snaps, want, &rep)
	})
	if s == nil {
		return rep, err
	}
	rep.Records, rep.Bytes, rep.PartialBytes = s.at.seq, s.at.end, s.tail.size
	if s.at.seq > 0 {
		rep.LastSum = hex.EncodeToString(s.at.sum[:])
	}
	if d, ok := errors.AsType[*Damage](err); ok {
		d.Snapshot = behind(fsys, name, d.Good, snaps)
	}
	if err != nil {
		return rep, err
	}
	if seqs := snapshotSeqs(names); len(seqs) > 0 && seqs[0] > s.at.seq {
		return rep, s.damage(shorter(s.at.seq, seqs[0]))
	}
	if highest > s.at.seq {
		return rep, s.damage(fmt.Sprintf("the journal ends with record %d, but there is a checkpoint of record %d: "+
			"records were lost", s.at.seq, highest))
	}
	return rep, nil
}

// leads checks the record of a lead, or of a machine that leaves.
func (r *Report) leads(s *scanner, p *parsed) error {
	if len(p.facts) > 0 {
		return nil
	}
	rec := p.record()
	l, ok := rec.Lead()
	switch {
	case ok && l.Epoch <= r.Epoch:
		return s.wrong(fmt.Sprintf("record %d begins epoch %d after epoch %d: each has to be higher", rec.Seq, l.Epoch,
			r.Epoch))
	case ok:
		r.Epoch, r.Left = l.Epoch, false
	case rec.Left():
		r.Left = true
	}
	return nil
}

// wrong is the damage of the record just read.
func (s *scanner) wrong(why string) *Damage {
	return &Damage{File: s.name, Line: s.at.seq, Offset: s.at.start, Good: s.at.seq, Why: why}
}

// checkPoint checks the record just read against its snapshots and checkpoints.
func checkPoint(s *scanner, snaps []*snapshot, want map[int64]string, rep *Report) error {
	for _, snap := range snaps {
		if snap.Seq != s.at.seq {
			continue
		}
		if snap.Line != hex.EncodeToString(s.at.hash[:]) || snap.Start != s.at.start || snap.End != s.at.end {
			return s.wrong(another(snap.Seq))
		}
		rep.Snapshots = append(rep.Snapshots, snap.Seq)
	}
	if sum, ok := want[s.at.seq]; ok && sum != hex.EncodeToString(s.at.sum[:]) {
		return s.wrong(fmt.Sprintf("record %d is not the one of the checkpoint: the journal was replaced or rewritten",
			s.at.seq))
	}
	return nil
}

// behind returns the newest valid snapshot of a record after the good ones; 0: none.
func behind(fsys FS, name string, good int64, snaps []*snapshot) (newest int64) {
	f, size, err := openSized(fsys, name)
	if err != nil {
		return 0
	}
	defer f.Close()
	for _, s := range snaps {
		if p, ok := s.point(f, size); ok && p.seq > good {
			newest = max(newest, p.seq)
		}
	}
	return newest
}

// readAll reads the whole journal and calls fn after each good record. The scanner is nil if the
// file cannot be opened.
func readAll(fsys FS, name string, fn func(*scanner, *parsed) error) (*scanner, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	defer f.Close()
	s, err := readFrom(f, name, point{}, fn)
	if d, ok := errors.AsType[*Damage](err); ok && d.Offset == s.at.end {
		// A writer may have undone a failed write and made another between two of our reads. Real
		// damage is there the second time too.
		s, err = readFrom(f, name, s.at, fn)
	}
	return s, err
}

func readFrom(f File, name string, from point, fn func(*scanner, *parsed) error) (*scanner, error) {
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be measured: %w", name, err)
	}
	s := newScanner(f, name, from, size)
	for {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return s, err
		}
		if err := fn(s, &p); err != nil {
			return s, err
		}
	}
}
