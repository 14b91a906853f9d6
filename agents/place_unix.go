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
	apart    apart    // the thread that starts sandboxes
}

// newPlace prepares this process for launches.
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

// ready is what a launch needs and can be prepared before its spec arrives, to save time.
type ready struct {
	cgroup   string // "" = none
	cgroupFd int    // -1 = none
	out      *streams
	err      error
}

// prepare prepares the next launch.
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

// claimed is a pid file that this process has created. It stays open, so that recording the end
// takes one write.
type claimed struct {
	fd    int
	first []byte // its first line
}

// claim creates the pid file with its complete content in one step: readers never see half a
// record, and only one claimant wins. The others get fs.ErrExist.
func claim(pidFile string, id identity) (*claimed, error) {
	data, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(pidFile)
	tmp := fmt.Sprintf("%s.%s.%d.%d", dir, base, id.Pid, id.Launched.UnixNano())
	const fresh = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC
	fd, err := unix.Open(tmp, fresh, 0o600)
	if errors.Is(err, unix.ENOENT) {
		_ = os.MkdirAll(dir, 0o700) // the next error says what is wrong with it
		fd, err = unix.Open(tmp, fresh, 0o600)
	}
	if err != nil {
		return nil, fault.New("check that the state folder can be written", "pid file %s: %s", pidFile, err)
	}
	file := &claimed{fd, data}
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
	return nil, fault.New("check that the state folder can be written and supports hard links",
		"pid file %s: %w", pidFile, err)
}

// line appends a line.
func (c *claimed) line(data []byte) error {
	data = append(data, '\n')
	n, err := unix.Write(c.fd, data)
	if err == nil && n < len(data) {
		err = unix.ENOSPC
	}
	return err
}

// ended records how the launch ended. It begins with a newline, because an earlier attempt may have
// written part of a line.
func (c *claimed) ended(e Exit) error {
	data, err := json.Marshal(endLine{Ended: &e})
	if err != nil {
		return err
	}
	return c.line(append([]byte{'\n'}, data...))
}

func (c *claimed) close() { unix.Close(c.fd) }

// linkNew is moveNew with a hard link.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
