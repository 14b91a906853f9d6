package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"sluice/internal/fault"
)

// Options configures Open, Verify and Repair. The zero value is right outside tests.
type Options struct {
	FS   FS                               // nil: the real disk
	Logf func(format string, args ...any) // for events that are not errors; nil: discarded
	Copy Copy                             // receives what Append writes, at the same time; nil: the file is all
}

func (o Options) fs() FS {
	if o.FS == nil {
		return OSFS()
	}
	return o.FS
}

func (o Options) logf() func(string, ...any) {
	if o.Logf == nil {
		return func(string, ...any) {}
	}
	return o.Logf
}

// Recovery is what Open found and fixed.
type Recovery struct {
	Records  int64 // in the journal
	Bytes    int64
	Snapshot int64 // seq of the snapshot it starts from; 0: none
	Checked  int64 // records read and checked: those after the snapshot, or all

	TornBytes int64  // of an interrupted write that was cut off; 0: none
	TornFile  string // where they are kept; "" if they were all zeros

	Ignored []string // unusable snapshots, each with its reason
}

// Open opens the journal in dir, which must exist, and creates one if there is none. It reads and
// checks what follows the newest good snapshot, or everything. On a *Damage nothing was changed.
// ErrStalled means that the disk accepts no writes; Open may be retried.
func Open(dir string, opt Options) (*Log, Recovery, error) {
	return newLog(dir, opt).start()
}

// OpenRead opens the existing journal in dir for reading. It changes nothing, needs no write
// permission, and may run beside the daemon. It ignores a torn last line. The Log accepts no Append
// and no snapshot.
func OpenRead(dir string, opt Options) (*Log, Recovery, error) {
	l := newLog(dir, opt)
	l.reads = true
	return l.start()
}

func newLog(dir string, opt Options) *Log {
	l := &Log{fs: opt.fs(), logf: opt.logf(), dir: dir, name: path(dir, FileName), copy: opt.Copy}
	l.idle = sync.NewCond(&l.mu)
	l.requests.New = func() any { return &request{turn: make(chan bool, 1)} }
	return l
}

// start reads the existing journal, or creates one.
func (l *Log) start() (*Log, Recovery, error) {
	var rec Recovery
	found, err := l.look(&rec)
	if err != nil {
		return nil, rec, err
	}
	if !found.journal && !l.reads {
		err = l.create()
	} else {
		err = l.open(found, &rec)
	}
	if err != nil {
		if l.file != nil {
			l.file.Close()
		}
		return nil, rec, err
	}
	rec.Records, rec.Bytes = l.head.seq, l.head.end
	return l, rec, nil
}

// contents is what the journal's folder contains.
type contents struct {
	journal bool
	names   []string
	newest  int64     // highest seq in a snapshot's name, good or not
	best    *snapshot // newest good one
}

func (l *Log) look(rec *Recovery) (contents, error) {
	var c contents
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return c, fault.New("it must exist and be yours", "%s: cannot be read: %w", l.dir, err)
	}
	c.names = names
	c.journal = slices.Contains(names, FileName)
	for _, seq := range snapshotSeqs(names) {
		c.newest = max(c.newest, seq)
		if c.best != nil {
			continue
		}
		s, err := readSnapshot(l.fs, l.dir, seq)
		if err != nil {
			rec.Ignored = append(rec.Ignored, err.Error())
			l.logf("journal: snapshot ignored: %v", err)
			continue
		}
		s.payload = nil
		c.best = s
	}
	if !c.journal && c.newest > 0 {
		return c, &Damage{File: l.name, Line: 1,
			Why: fmt.Sprintf("the journal is gone, but a snapshot of its record %d is there", c.newest)}
	}
	return c, nil
}

// create creates an empty journal. Its parent folders may be new too, so it syncs them as well.
func (l *Log) create() error {
	f, err := l.fs.Create(l.name)
	if err != nil {
		return l.openError(err)
	}
	l.file = f
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.syncFailed(err)
	}
	parent := filepath.Dir(l.dir)
	for _, dir := range []string{parent, filepath.Dir(parent)} {
		if err := l.fs.SyncDir(dir); err != nil {
			l.logf("journal: %s: cannot be synced: %v", dir, err)
		}
	}
	return nil
}

func (l *Log) openError(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EIO} {
		if errors.Is(err, full) {
			return l.stalled("cannot be opened to write", err)
		}
	}
	return fault.New("it must be yours", "%s: cannot be opened to write: %w", l.name, err)
}

func (l *Log) open(c contents, rec *Recovery) error {
	open := l.fs.OpenWrite
	if l.reads {
		open = l.fs.Open
	}
	f, err := open(l.name)
	switch {
	case err != nil && l.reads:
		return fmt.Errorf("%s: cannot be read: %w", l.name, err)
	case err != nil:
		return l.openError(err)
	}
	l.file = f
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("%s: cannot be measured: %w", l.name, err)
	}
	var from point
	if c.best != nil {
		if from, err = c.best.check(f, l.name, size); err != nil {
			return err
		}
		l.snap, rec.Snapshot = from.seq, from.seq
		l.marks = append(l.marks, from)
	}
	l.from = from
	s := newScanner(f, l.name, from, size)
	err = l.scan(s, nil)
	rec.Checked = s.at.seq - from.seq
	if err != nil {
		return err
	}
	if s.at.seq < c.newest {
		return s.damage(shorter(s.at.seq, c.newest))
	}
	l.head = s.at
	if l.reads {
		rec.TornBytes = s.tail.size
		return nil
	}
	if s.tail.size > 0 {
		if err := l.cutTorn(s.tail, c.names, rec); err != nil {
			return err
		}
	}
	return l.settle()
}

// scan reads to the end, and marks places on the way. It calls fn, if there is one, with each record.
func (l *Log) scan(s *scanner, fn func(Record) error) error {
	for {
		p, err := s.next()
		if err == nil && fn != nil {
			err = fn(p.record())
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case s.at.seq%markEvery == 0:
			l.marks = append(l.marks, s.at)
		}
	}
}

// settle syncs the journal and its folder. A process killed between a write and its sync leaves
// whole records that a power cut would still lose, and so does one killed between creating the
// journal and syncing its name.
func (l *Log) settle() error {
	if err := l.file.Sync(); err != nil {
		return l.syncFailed(err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.syncFailed(err)
	}
	return nil
}

func shorter(last, seq int64) string {
	return fmt.Sprintf("the journal ends with record %d, but a snapshot of its record %d is there: records were lost",
		last, seq)
}

// cutTorn copies the torn tail aside and syncs the copy before it cuts, so that a crash in between
// loses nothing. settle syncs the cut.
func (l *Log) cutTorn(t tail, names []string, rec *Recovery) error {
	rec.TornBytes = t.size
	if len(t.data) > 0 {
		name := freeName(names, "journal.torn-"+strconv.FormatInt(t.offset, 10))
		end := t.offset + int64(len(t.data))
		if err := copyAside(l.fs, l.dir, path(l.dir, name), l.file, t.offset, end); err != nil {
			return l.stalled("the torn last line cannot be kept aside", err)
		}
		rec.TornFile = path(l.dir, name)
	}
	if err := l.file.Truncate(t.offset); err != nil {
		return l.stalled("the torn last line cannot be cut off", err)
	}
	l.logf("journal: a torn last line of %d bytes at offset %d was cut off; kept as %q", t.size, t.offset, rec.TornFile)
	return nil
}

// freeName returns base, or base with the first number that makes it new.
func freeName(names []string, base string) string {
	name := base
	for i := 1; slices.Contains(names, name); i++ {
		name = base + "." + strconv.Itoa(i)
	}
	return name
}
