package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
)

var errCrashed = errors.New("the machine is off")

// disk is a disk that loses what was not synced when it crashes, that can be full, and that can
// fail.
type disk struct {
	mu      sync.Mutex
	rng     *rand.Rand
	names   map[string]*inode // as the process sees it
	durable map[string]*inode // as after a power cut

	room     int64 // bytes that may still be written; below 0: no limit
	steps    int   // operations until the crash; below 0: never
	syncErr  error // what the next Sync returns
	truncErr error
	lie      bool // the mutant: Sync does nothing and reports success
	syncs    int
	crashed  bool
}

type inode struct{ data, durable []byte }

func newDisk(seed uint64) *disk {
	return &disk{rng: rand.New(rand.NewPCG(seed, 1)), names: map[string]*inode{}, durable: map[string]*inode{}, room: -1, steps: -1}
}

// step counts an operation and reports whether the machine is off by now.
func (d *disk) step() error {
	if d.steps == 0 {
		d.crashed = true
	}
	if d.crashed {
		return errCrashed
	}
	if d.steps > 0 {
		d.steps--
	}
	return nil
}

// crash is the power cut: synced data stays, and a random part of the rest.
func (d *disk) crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rng.IntN(2) == 0 {
		d.durable = map[string]*inode{}
		maps.Copy(d.durable, d.names)
	}
	d.names = map[string]*inode{}
	for name, ino := range d.durable {
		d.names[name] = ino
		ino.data = d.survivors(ino)
		ino.durable = append([]byte(nil), ino.data...)
	}
	d.crashed, d.steps, d.room, d.syncErr, d.truncErr = false, -1, -1, nil, nil
}

func (d *disk) survivors(ino *inode) []byte {
	kept := len(ino.durable)
	if len(ino.data) < kept || string(ino.data[:kept]) != string(ino.durable) {
		// Cut and not synced: either the old or the new.
		if d.rng.IntN(2) == 0 {
			return append([]byte(nil), ino.durable...)
		}
		return append([]byte(nil), ino.data...)
	}
	n := kept
	if pending := len(ino.data) - kept; pending > 0 {
		n += d.rng.IntN(pending + 1)
	}
	data := append([]byte(nil), ino.data[:n]...)
	if d.rng.IntN(3) == 0 { // the size reached the disk, the data did not
		data = append(data, make([]byte, len(ino.data)-n)...)
	}
	return data
}

func (d *disk) Open(name string) (File, error)      { return d.open(name) }
func (d *disk) OpenWrite(name string) (File, error) { return d.open(name) }

func (d *disk) open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	ino := d.names[name]
	if ino == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &handle{d, ino}, nil
}

func (d *disk) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	if d.names[name] == nil {
		d.names[name] = &inode{}
	}
	d.names[name].data = nil
	return &handle{d, d.names[name]}, nil
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	delete(d.names, name)
	return nil
}

func (d *disk) ReadDir(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.names {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, d.step()
}

func (d *disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil || d.lie {
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

// handle is an open file of a disk.
type handle struct {
	d   *disk
	ino *inode
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if off >= int64(len(h.ino.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.ino.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	err := h.d.step()
	n := len(p)
	if err != nil {
		n = h.d.rng.IntN(len(p) + 1)
	} else if h.d.room >= 0 && int64(n) > h.d.room {
		n, err = int(h.d.room), &fs.PathError{Op: "write", Path: "disk", Err: syscall.ENOSPC}
	}
	if h.d.room >= 0 {
		h.d.room -= int64(n)
	}
	if n == 0 {
		return 0, err
	}
	if grow := off + int64(n) - int64(len(h.ino.data)); grow > 0 {
		h.ino.data = append(h.ino.data, make([]byte, grow)...)
	}
	copy(h.ino.data[off:], p[:n])
	return n, err
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.d.syncs++
	if err := h.d.step(); err != nil || h.d.lie {
		return err
	}
	if err := h.d.syncErr; err != nil {
		// As on Linux: the pages count as clean from now on.
		h.d.syncErr = nil
		return err
	}
	h.ino.durable = append(h.ino.durable[:0], h.ino.data...)
	return nil
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.truncErr != nil {
		return h.d.truncErr
	}
	if size > int64(len(h.ino.data)) {
		return fmt.Errorf("cannot be made longer: %d", size)
	}
	h.ino.data = h.ino.data[:size:size]
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.ino.data)), nil
}

func (h *handle) Close() error { return nil }
