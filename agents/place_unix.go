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

// place is what all launches of a shim have in common.
type place struct {
	self     identity // the process
	groups   string   // the folder its cgroups are made in, "" = none
	orphans  bool     // of a tree become children of this process
	launches int      // how many it has made ready
	apart    apart    // where sandboxes are started
}

// newPlace makes this process one that launches.
func newPlace(mark string, noCgroup bool) (*place, error) {
	boot, err := bootID()
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

// ready is what a launch needs and can be had before it is known: nobody waits
// for it then.
type ready struct {
	cgroup   string // "" = none
	cgroupFd int    // -1 = none
	out      *streams
	err      error
}

// prepare makes it.
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

// claimed is a pid file that this process has made. It stays open, so that to
// note the end takes one write.
type claimed struct{ fd int }

// claim gives the pid file its name and whole content in one step: a reader
// never sees half a record, and of several only one wins. The others get
// fs.ErrExist.
func claim(pidFile string, id identity) (*claimed, error) {
	data, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(pidFile)
	tmp := fmt.Sprintf("%s.%s.%d.%d", dir, base, id.Pid, id.Launched.UnixNano())
	fd, err := unix.Open(tmp, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.New("see that the state folder can be written", "pid file %s: %s", pidFile, err)
	}
	file := &claimed{fd}
	if err = file.line(data); err == nil {
		err = moveNew(tmp, pidFile)
	}
	if err == nil {
		return file, nil
	}
	file.close()
	_ = unix.Unlink(tmp)
	if errors.Is(err, fs.ErrExist) {
		return nil, fs.ErrExist
	}
	return nil, fault.New("see that the state folder can be written and knows hard links", "pid file %s: %w", pidFile, err)
}

// line adds a line to it.
func (c *claimed) line(data []byte) error {
	data = append(data, '\n')
	n, err := unix.Write(c.fd, data)
	if err == nil && n < len(data) {
		err = unix.ENOSPC
	}
	return err
}

// ended notes how its launch ended. It begins with a line's end: an attempt
// before may have written a part.
func (c *claimed) ended(e Exit) error {
	data, err := json.Marshal(endLine{Ended: &e})
	if err != nil {
		return err
	}
	return c.line(append([]byte{'\n'}, data...))
}

func (c *claimed) close() { unix.Close(c.fd) }

// linkNew is moveNew by way of a hard link.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
