//go:build linux || darwin

package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

// place is what all launches of a shim share.
type place struct {
	self     identity // the process
	groups   string   // the folder for its cgroups, "" = none
	orphans  bool     // the tree's orphans become children of this process
	launches int      // launches prepared so far
	file     *claimed // the file of its records, nil before the first
	apart    apart    // the thread that starts sandboxes
}

// newPlace prepares this process for launches.
func newPlace(mark string, noCgroup bool) (*place, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	self, err := lookProc(os.Getpid())
	if err != nil {
		return nil, fault.New("mount /proc", "own process: %w", err)
	}
	p := &place{self: identity{Version: recordVersion, Pid: self.pid, Start: self.start, Boot: boot, Mark: mark}}
	p.orphans = becomeSubreaper()
	if !noCgroup {
		p.groups = cgroupHome()
	}
	return p, nil
}

// ready is what a launch needs and can be prepared before its spec arrives, to save time.
type ready struct {
	cgroup   string // "" = none
	cgroupFd int    // -1 = none
	out      *streams
	err      error
}

func (p *place) prepare() *ready {
	p.launches++
	r := &ready{cgroupFd: -1}
	if p.groups != "" {
		r.cgroup, r.cgroupFd = makeCgroup(filepath.Join(p.groups, cgroupName(p.self.Mark)+strconv.Itoa(p.launches)))
	}
	r.out, r.err = newStreams()
	return r
}

func (r *ready) close() {
	if r.cgroupFd >= 0 {
		unix.Close(r.cgroupFd)
	}
	removeCgroup(r.cgroup)
	if r.out != nil {
		r.out.close()
	}
}

// claimed is the file of this process's records, open for their ends. Each pid file is a name of it:
// giving it another name takes a fraction of the time of creating a file.
type claimed struct {
	fd    int
	above string // the folder above those of its pid files; recordName is unique there
	size  int
	last  []byte // the newest record
}

// maxShared limits a file of records that receives another one, in bytes. That record and its end
// must fit in maxRecordBytes.
const maxShared = 16 << 10

// claim creates the pid file with its complete record in one step: readers never see half a record,
// and only one claimant wins. The others get fs.ErrExist.
func (p *place) claim(pidFile string, id identity) error {
	id.Name = recordName(pidFile)
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	above := filepath.Dir(filepath.Dir(pidFile))
	if c := p.file; canLinkOpen && c != nil && c.above == above && c.size+len(data) <= maxShared {
		if err := c.share(pidFile, data); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	p.file.close()
	p.file = nil
	fd, err := createRecord(pidFile, data, id)
	if err == nil {
		p.file = &claimed{fd, above, len(data), data}
	}
	return err
}

// createRecord creates a pid file as a new file.
func createRecord(pidFile string, data []byte, id identity) (fd int, err error) {
	dir, base := filepath.Split(pidFile)
	tmp := fmt.Sprintf("%s.%s.%d.%d", dir, base, id.Pid, id.Launched.UnixNano())
	err = inFolder(dir, func() error {
		fd, err = unix.Open(tmp, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return -1, fault.New("check that the state folder can be written", "pid file %s: %s", pidFile, err)
	}
	if err = appendLine(fd, data); err == nil {
		err = moveNew(tmp, pidFile)
	}
	if err == nil {
		return fd, nil
	}
	unix.Close(fd)
	_ = unix.Unlink(tmp)
	if errors.Is(err, fs.ErrExist) {
		return -1, fs.ErrExist
	}
	return -1, fault.New("check that the state folder can be written and supports hard links",
		"pid file %s: %w", pidFile, err)
}

// inFolder calls do, and once more with the folder created if it was missing.
func inFolder(dir string, do func() error) error {
	err := do()
	if errors.Is(err, unix.ENOENT) {
		_ = os.MkdirAll(dir, 0o700) // the next error says what is wrong with it
		err = do()
	}
	return err
}

// share makes the pid file another name of this file, with a record of its own. A record whose name
// is taken is nobody's.
func (c *claimed) share(pidFile string, data []byte) error {
	if err := c.line(data); err != nil {
		return err
	}
	c.last = data
	return inFolder(filepath.Dir(pidFile), func() error { return linkOpen(c.fd, pidFile) })
}

// line appends a line. It begins with a newline, because an earlier attempt may have written part of
// a line.
func (c *claimed) line(data []byte) error {
	c.size += len(data) + 2
	return appendLine(c.fd, append([]byte{'\n'}, data...))
}

func appendLine(fd int, data []byte) error {
	data = append(data, '\n')
	n, err := unix.Write(fd, data)
	if err == nil && n < len(data) {
		err = unix.ENOSPC
	}
	return err
}

// ended records how the newest launch ended.
func (c *claimed) ended(e Exit) error {
	data, err := json.Marshal(endLine{Ended: &e})
	if err != nil {
		return err
	}
	return c.line(data)
}

func (c *claimed) close() {
	if c != nil {
		unix.Close(c.fd)
	}
}

// linkNew is moveNew with a hard link.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
