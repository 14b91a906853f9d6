// Package faultdisk is a disk in memory, for tests of what is kept on one: it knows what a power cut would leave, can be
// full, can fail, and ends the process at an operation. Each test adds Open, OpenWrite and Create, which return the file
// of its own interface.
package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// ErrDead is what a process gets whose end has come.
var ErrDead = errors.New("the process is dead")

// Disk is the disk. Where a test and the process use it at a time, the test holds Mu while it uses fields.
type Disk struct {
	Mu       sync.Mutex
	Rand     *rand.Rand
	Names    map[string]*Inode // as the process sees it
	Durable  map[string]*Inode // as a power cut leaves it
	Room     int               // bytes that may still be written; below 0: no limit
	DieAt    int               // operations until the process dies; below 0: it does not
	Dead     bool
	SyncErr  error  // what the next sync returns: as on Linux, the pages count as clean from then on
	SyncOf   string // of this file alone; "" = of any
	TruncErr error
	Lie      bool // a sync does nothing and reports success
	Syncs    int
	Failed   bool // a sync has failed in this life
	After    bool // … and the file was written to all the same
}

// Inode is a file's content.
type Inode struct {
	Data, Durable []byte
	dirty         int // from where on Data may differ from Durable
	failed        bool
}

// New returns an empty disk.
func New(g *rand.Rand) *Disk {
	return &Disk{Rand: g, Names: map[string]*Inode{}, Durable: map[string]*Inode{}, Room: -1, DieAt: -1}
}

// op counts an operation; it is where a process dies: before the operation, or in its middle.
func (d *Disk) op() error {
	if d.DieAt == 0 {
		d.Dead = true
	}
	if d.Dead {
		return ErrDead
	}
	if d.DieAt > 0 {
		d.DieAt--
	}
	return nil
}

// IsDead reports whether the process is dead.
func (d *Disk) IsDead() bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return d.Dead
}

// Die ends the process now.
func (d *Disk) Die() {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Dead = true
}

// Revive gives the disk to the next process, as it is.
func (d *Disk) Revive() {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Dead, d.DieAt, d.SyncErr, d.TruncErr, d.Failed, d.After = false, -1, nil, nil, false, false
	for _, ino := range d.Names {
		ino.failed = false
	}
}

// SetRoom sets how many bytes may still be written.
func (d *Disk) SetRoom(n int) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Room = n
}

// PowerCut leaves of each file what was synced and a random part of the rest.
func (d *Disk) PowerCut() {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if d.Rand.IntN(2) == 0 { // the names may have reached the disk before they had to
		d.Durable = maps.Clone(d.Names)
	}
	d.Names = map[string]*Inode{}
	for _, name := range slices.Sorted(maps.Keys(d.Durable)) {
		ino := d.Durable[name]
		ino.Data = d.survivors(ino)
		ino.Durable, ino.dirty = bytes.Clone(ino.Data), len(ino.Data)
		d.Names[name] = ino
	}
}

func (d *Disk) survivors(ino *Inode) []byte {
	kept := len(ino.Durable)
	if len(ino.Data) < kept || !bytes.Equal(ino.Data[:kept], ino.Durable) { // cut and not synced: the old or the new
		if d.Rand.IntN(2) == 0 {
			return bytes.Clone(ino.Durable)
		}
		return bytes.Clone(ino.Data)
	}
	n := kept
	if pending := len(ino.Data) - kept; pending > 0 {
		n += d.Rand.IntN(pending + 1)
	}
	data := bytes.Clone(ino.Data[:n])
	if d.Rand.IntN(3) == 0 { // the size reached the disk, the data did not
		data = append(data, make([]byte, len(ino.Data)-n)...)
	}
	return data
}

// Find returns an existing file.
func (d *Disk) Find(name string) (*File, error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if d.Dead {
		return nil, ErrDead
	}
	if d.Names[name] == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &File{d, d.Names[name], name}, nil
}

// Empty returns an empty file; an existing one is truncated.
func (d *Disk) Empty(name string) (*File, error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if err := d.op(); err != nil {
		return nil, err
	}
	if d.Room == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	if d.Names[name] == nil {
		d.Names[name] = &Inode{}
	}
	d.Names[name].Data, d.Names[name].dirty = nil, 0
	return &File{d, d.Names[name], name}, nil
}

// Rename moves a file.
func (d *Disk) Rename(from, to string) error {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	d.Names[to] = d.Names[from]
	delete(d.Names, from)
	return nil
}

// Remove removes a file.
func (d *Disk) Remove(name string) error {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	delete(d.Names, name)
	return nil
}

// ReadDir returns the names in a folder.
func (d *Disk) ReadDir(dir string) ([]string, error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if d.Dead {
		return nil, ErrDead
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.Names)) {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

// SyncDir has a folder's names outlive a power cut.
func (d *Disk) SyncDir(dir string) error {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if err := d.op(); err != nil || d.Lie {
		return err
	}
	maps.DeleteFunc(d.Durable, func(name string, _ *Inode) bool { return filepath.Dir(name) == dir })
	for name, ino := range d.Names {
		if filepath.Dir(name) == dir {
			d.Durable[name] = ino
		}
	}
	return nil
}

// File is an open file of a Disk.
type File struct {
	d    *Disk
	ino  *Inode
	name string
}

func (f *File) ReadAt(p []byte, off int64) (int, error) {
	f.d.Mu.Lock()
	defer f.d.Mu.Unlock()
	if f.d.Dead {
		return 0, ErrDead
	}
	return bytes.NewReader(f.ino.Data).ReadAt(p, off)
}

func (f *File) WriteAt(p []byte, off int64) (int, error) {
	f.d.Mu.Lock()
	defer f.d.Mu.Unlock()
	was := f.d.Dead
	err := f.d.op()
	n := len(p)
	if was {
		return 0, err
	}
	f.d.After = f.d.After || f.ino.failed
	if err != nil {
		n = f.d.Rand.IntN(len(p) + 1)
	} else if f.d.Room >= 0 && n > f.d.Room {
		n, err = f.d.Room, &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if f.d.Room >= 0 {
		f.d.Room -= n
	}
	if n == 0 {
		return 0, err
	}
	if grow := int(off) + n - len(f.ino.Data); grow > 0 {
		f.ino.Data = append(f.ino.Data, make([]byte, grow)...)
	}
	copy(f.ino.Data[off:], p[:n])
	f.ino.dirty = min(f.ino.dirty, int(off))
	return n, err
}

func (f *File) Sync() error {
	f.d.Mu.Lock()
	defer f.d.Mu.Unlock()
	f.d.Syncs++
	if err := f.d.op(); err != nil || f.d.Lie {
		return err
	}
	if err := f.d.SyncErr; err != nil && (f.d.SyncOf == "" || f.d.SyncOf == f.name) {
		f.d.SyncErr, f.d.Failed, f.ino.failed = nil, true, true
		return err
	}
	from := min(f.ino.dirty, len(f.ino.Durable), len(f.ino.Data))
	f.ino.Durable = append(f.ino.Durable[:from], f.ino.Data[from:]...)
	f.ino.dirty = len(f.ino.Data)
	return nil
}

func (f *File) Truncate(size int64) error {
	f.d.Mu.Lock()
	defer f.d.Mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	if f.d.TruncErr != nil {
		return f.d.TruncErr
	}
	if size > int64(len(f.ino.Data)) {
		return fmt.Errorf("cannot be made longer: %d", size)
	}
	f.ino.Data = f.ino.Data[:size:size]
	f.ino.dirty = min(f.ino.dirty, int(size))
	return nil
}

func (f *File) Size() (int64, error) {
	f.d.Mu.Lock()
	defer f.d.Mu.Unlock()
	if f.d.Dead {
		return 0, ErrDead
	}
	return int64(len(f.ino.Data)), nil
}

func (f *File) Close() error { return nil }
