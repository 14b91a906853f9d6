package daemon

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"

	"sluice/journal"
)

var errDead = errors.New("the process is dead")

// simDisk is a disk in memory that knows what a power cut would leave, can be full, can fail a
// sync, and dies at an operation that was drawn before.
type simDisk struct {
	mu      sync.Mutex
	g       *rand.Rand
	names   map[string]*simInode // as the process sees it
	durable map[string]*simInode // as a power cut leaves it
	room    int                  // bytes that may still be written; below 0: no limit
	dieAt   int                  // operations until the process dies; below 0: it does not
	dead    bool
	syncErr error // what the next sync of a file gives
	failed  bool  // a sync of the journal has failed in this life
	after   bool  // … and something was appended to it all the same
	ops     int
}

type simInode struct {
	data, durable []byte
	dirty         int // from where on data may differ from durable
}

func newSimDisk(seed uint64) *simDisk {
	return &simDisk{g: rand.New(rand.NewPCG(seed, 2)), names: map[string]*simInode{}, durable: map[string]*simInode{}, room: -1, dieAt: -1}
}

// op counts an operation that changes the disk; it is where a process dies: before the operation,
// or in its middle.
func (d *simDisk) op() error {
	if d.dieAt == 0 {
		d.dead = true
	}
	if d.dead {
		return errDead
	}
	if d.dieAt > 0 {
		d.dieAt--
	}
	d.ops++
	return nil
}

func (d *simDisk) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// die ends the process now.
func (d *simDisk) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

// revive gives the disk to the next process, as it is.
func (d *simDisk) revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead, d.dieAt, d.syncErr, d.failed, d.after = false, -1, nil, false, false
}

// powerCut leaves of each file what was synced and a random part of the rest.
func (d *simDisk) powerCut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.g.IntN(2) == 0 { // the names may have reached the disk before they had to
		d.durable = map[string]*simInode{}
		maps.Copy(d.durable, d.names)
	}
	d.names = map[string]*simInode{}
	for _, name := range sortedKeys(d.durable) {
		ino := d.durable[name]
		ino.data = d.survivors(ino)
		ino.durable, ino.dirty = append([]byte(nil), ino.data...), len(ino.data)
		d.names[name] = ino
	}
}

func (d *simDisk) survivors(ino *simInode) []byte {
	kept := len(ino.durable)
	if len(ino.data) < kept || !bytes.Equal(ino.data[:kept], ino.durable) { // cut and not synced: the old or the new
		if d.g.IntN(2) == 0 {
			return append([]byte(nil), ino.durable...)
		}
		return append([]byte(nil), ino.data...)
	}
	n := kept
	if pending := len(ino.data) - kept; pending > 0 {
		n += d.g.IntN(pending + 1)
	}
	data := append([]byte(nil), ino.data[:n]...)
	if d.g.IntN(3) == 0 { // the size reached the disk, the data did not
		data = append(data, make([]byte, len(ino.data)-n)...)
	}
	return data
}

// holds reports whether a power cut now would leave text in the journal.
func (d *simDisk) holds(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ino := d.durable[simJournal]
	return ino != nil && bytes.Contains(ino.durable, []byte(text))
}

// journalBytes is the journal as a process would read it now.
func (d *simDisk) journalBytes() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ino := d.names[simJournal]; ino != nil {
		return ino.data
	}
	return nil
}

const (
	simDir     = "/sim/state"
	simJournal = simDir + "/" + journal.FileName
)

func (d *simDisk) Open(name string) (journal.File, error)      { return d.open(name) }
func (d *simDisk) OpenWrite(name string) (journal.File, error) { return d.open(name) }

func (d *simDisk) open(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errDead
	}
	if d.names[name] == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &simFile{d, d.names[name], name}, nil
}

func (d *simDisk) Create(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return nil, err
	}
	if d.room == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	if d.names[name] == nil {
		d.names[name] = &simInode{}
	}
	d.names[name].data, d.names[name].dirty = nil, 0
	return &simFile{d, d.names[name], name}, nil
}

func (d *simDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *simDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	delete(d.names, name)
	return nil
}

func (d *simDisk) ReadDir(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errDead
	}
	var names []string
	for _, name := range sortedKeys(d.names) {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

func (d *simDisk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	for name := range d.durable {
		if filepath.Dir(name) == dir {
			delete(d.durable, name)
		}
	}
	for name, ino := range d.names {
		if filepath.Dir(name) == dir {
			d.durable[name] = ino
		}
	}
	return nil
}

// simFile is an open file of a simDisk.
type simFile struct {
	d    *simDisk
	ino  *simInode
	name string
}

func (f *simFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.dead {
		return 0, errDead
	}
	if off >= int64(len(f.ino.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.ino.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *simFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	was := f.d.dead
	err := f.d.op()
	n := len(p)
	if was {
		return 0, err
	}
	if f.d.failed && f.name == simJournal {
		f.d.after = true
	}
	if err != nil {
		n = f.d.g.IntN(len(p) + 1)
	} else if f.d.room >= 0 && n > f.d.room {
		n, err = f.d.room, &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if f.d.room >= 0 {
		f.d.room -= n
	}
	if n == 0 {
		return 0, err
	}
	end := int(off) + n
	for len(f.ino.data) < end {
		f.ino.data = append(f.ino.data, make([]byte, end-len(f.ino.data))...)
	}
	copy(f.ino.data[off:], p[:n])
	f.ino.dirty = min(f.ino.dirty, int(off))
	return n, err
}

func (f *simFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	if err := f.d.syncErr; err != nil && f.name == simJournal {
		f.d.syncErr, f.d.failed = nil, true
		return err
	}
	from := min(f.ino.dirty, len(f.ino.durable), len(f.ino.data))
	f.ino.durable = append(f.ino.durable[:from], f.ino.data[from:]...)
	f.ino.dirty = len(f.ino.data)
	return nil
}

func (f *simFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	f.ino.data = f.ino.data[:size:size]
	f.ino.dirty = min(f.ino.dirty, int(size))
	return nil
}

func (f *simFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.dead {
		return 0, errDead
	}
	return int64(len(f.ino.data)), nil
}

func (f *simFile) Close() error { return nil }
