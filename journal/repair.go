package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"sluice/internal/fault"
)

// Repaired is what Repair did.
type Repaired struct {
	Last      int64    // seq of what is now the last record
	CutBytes  int64    // removed from the journal's end; 0: it already ended there
	CutFile   string   // where they are kept; "" if none were cut
	Snapshots []string // new names of the snapshots of removed records
}

// ErrNoRecord is a repair to a record that does not exist or is not good.
var ErrNoRecord = errors.New("no good record")

// Repair cuts the journal in dir back to record `to` (0: to nothing), after a person has looked at
// it. It first copies what it cuts to journal.cut-<unix seconds>. It renames snapshots of cut
// records, or of another journal, to cut-<unix seconds>-<name>. If `to` is not a good record, it
// returns ErrNoRecord and changes nothing. After a crash, a repeated Repair does the rest. No other
// process may have the journal open.
func Repair(dir string, to int64, opt Options) (Repaired, error) {
	fsys, name := opt.fs(), path(dir, FileName)
	rep := Repaired{Last: to}
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be read: %w", dir, err)
	}
	f, err := fsys.OpenWrite(name)
	if errors.Is(err, fs.ErrNotExist) && to == 0 {
		f, err = fsys.Create(name)
	}
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be opened to write: %w", name, err)
	}
	defer f.Close()
	at, foreign, size, err := lookUp(fsys, dir, f, name, names, to)
	if err != nil {
		return rep, err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	if size > at.end {
		rep.CutBytes = size - at.end
		rep.CutFile = path(dir, freeName(names, "journal.cut-"+stamp))
		if err := copyAside(fsys, dir, rep.CutFile, f, at.end, size); err != nil {
			return rep, fmt.Errorf("%s: what is to be cut cannot be kept aside: %w: nothing was cut", name, err)
		}
	}
	for _, old := range foreign {
		aside := freeName(names, "cut-"+stamp+"-"+old)
		if err := fsys.Rename(path(dir, old), path(dir, aside)); err != nil {
			return rep, fmt.Errorf("%s: cannot be put aside: %w: the journal was not cut", old, err)
		}
		rep.Snapshots = append(rep.Snapshots, aside)
	}
	if size > at.end {
		err = f.Truncate(at.end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return rep, fault.New("check the disk, then repair again", "%s: cannot be cut: %w", name, err)
	}
	return rep, nil
}

// lookUp finds the record `to` and the snapshots that do not belong to a journal ending there.
func lookUp(fsys FS, dir string, f File, name string, names []string,
	to int64) (at point, foreign []string, size int64, err error) {
	if size, err = f.Size(); err != nil {
		return at, nil, 0, fmt.Errorf("%s: cannot be measured: %w", name, err)
	}
	seqs := snapshotSeqs(names)
	s := newScanner(f, name, point{}, size)
	for s.at.seq < to {
		_, err := s.next()
		if _, broken := errors.AsType[*Damage](err); broken || errors.Is(err, io.EOF) {
			return at, nil, 0, fmt.Errorf("%s: record %d: %w: the last good one is %d", name, to, ErrNoRecord, s.at.seq)
		}
		if err != nil {
			return at, nil, 0, err
		}
		if !slices.Contains(seqs, s.at.seq) {
			continue
		}
		// An unreadable one is ignored at a start, so it may stay.
		if snap, err := readSnapshot(fsys, dir, s.at.seq); err == nil {
			if p, ok := snap.point(f, size); !ok || p != s.at {
				foreign = append(foreign, snapshotName(s.at.seq))
			}
		}
	}
	if to < 0 {
		return at, nil, 0, fault.New("give 0 or a seq", "%s: record %d: %w", name, to, ErrNoRecord)
	}
	for _, seq := range seqs {
		if seq > to {
			foreign = append(foreign, snapshotName(seq))
		}
	}
	return s.at, foreign, size, nil
}

// copyAside copies a part of f to a new file, and syncs the file and its name.
func copyAside(fsys FS, dir, name string, f File, from, to int64) error {
	out, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(out, 0), io.NewSectionReader(f, from, to-from))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, fsys.Remove(name))
	}
	return fsys.SyncDir(dir)
}
