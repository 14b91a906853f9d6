//go:build linux || darwin

package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

const (
	outputs    = 2        // stdout and stderr
	drainBytes = 64 << 10 // read at once
)

// streams are the pipes of the command's output and their sinks.
type streams struct {
	readers []*os.File
	writers []int
	sinks   [outputs]*sink
	drains  sync.WaitGroup
}

// newStreams creates the pipes, without their sinks.
func newStreams() (*streams, error) {
	st := &streams{}
	for range outputs {
		r, w, err := pipe()
		if err != nil {
			st.close()
			return nil, fault.New("raise the limit of open files", "pipe: %w", err)
		}
		st.readers, st.writers = append(st.readers, r), append(st.writers, w)
	}
	return st, nil
}

// seal replaces the command's stdout by one that nobody else can open: see Spec.Sealed.
func (st *streams) seal() error {
	r, w, err := sealed()
	if err != nil {
		return fault.New("raise the limit of open files", "socket: %w", err)
	}
	st.readers[0].Close()
	unix.Close(st.writers[0])
	st.readers[0], st.writers[0] = r, w
	return nil
}

// keep starts draining the outputs into the files of the launch. Those of an earlier launch in the
// same folder are removed.
func (st *streams) keep(spec Spec) {
	clearOutput(spec.Dir)
	for i, name := range []string{stdoutFile, stderrFile} {
		st.drains.Go(func() {
			st.sinks[i] = newSink(spec.Below, filepath.Join(spec.Dir, name), spec.MaxOutput)
			drain(st.sinks[i], st.readers[i])
		})
	}
}

// clearOutput removes the output files in dir. Usually there are none: os.Remove would ask twice.
func clearOutput(dir string) {
	for _, name := range []string{stdoutFile, stderrFile} {
		for _, suffix := range []string{"", TailSuffix, OldSuffix} {
			_ = unix.Unlink(filepath.Join(dir, name+suffix))
		}
	}
}

// drain reads to the end, or to the reader's deadline.
func drain(to *sink, from *os.File) {
	buf := make([]byte, drainBytes)
	for {
		n, err := from.Read(buf)
		_, _ = to.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// openStdin opens the file for the command's standard input.
func openStdin(name string) (int, error) {
	// Non-blocking only to open: a pipe without a writer must not block us.
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fault.New("name a file that can be read", "standard input %s: %w", name, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fault.New("name a regular file", "not a file")
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("standard input %s: %w", name, err)
	}
	_ = unix.SetNonblock(fd, false)
	return fd, nil
}

// closeWriters closes the command's ends.
func (st *streams) closeWriters() {
	for _, fd := range st.writers {
		unix.Close(fd)
	}
	st.writers = nil
}

// close closes both ends. A second call does no harm.
func (st *streams) close() {
	st.closeWriters()
	for _, r := range st.readers {
		r.Close()
	}
	st.readers = nil
}

// finish drains the rest and joins the files. It returns why stdout is not whole; "" = it is. The tree is
// gone, so each pipe ends at once unless something outside holds it.
func (st *streams) finish() (lost string) {
	for _, r := range st.readers {
		_ = r.SetReadDeadline(time.Now().Add(drainLimit))
	}
	st.drains.Wait()
	lost = st.sinks[0].close()
	_ = st.sinks[1].close() // only people read it
	st.close()
	return lost
}

// start starts the command, or the sandbox around it. An error says what failed and what to do.
func (s *shim) start() (pid int, err error) {
	defer s.next.out.closeWriters()
	info, err := os.Stat(s.spec.Cwd)
	if err != nil {
		return 0, fault.New("create it or name another", "folder %s: %w", s.spec.Cwd, fault.WithoutPath(err))
	}
	if !info.IsDir() {
		return 0, fault.New("name one", "folder %s: not a folder", s.spec.Cwd)
	}
	stdin := 0 // /dev/null
	if s.spec.Stdin != "" {
		if stdin, err = openStdin(s.spec.Stdin); err != nil {
			return 0, err
		}
		defer unix.Close(stdin)
	}
	argv, env := s.spec.program()
	file, err := LookUp(argv[0], env, s.spec.Cwd)
	if err != nil {
		return 0, err
	}
	more, files, err := s.handed()
	if err != nil {
		return 0, err
	}
	defer closeAll(files...)
	out := s.next.out.writers
	attr := &syscall.ProcAttr{
		Dir:   s.spec.Cwd,
		Env:   env,
		Files: append([]uintptr{uintptr(stdin), uintptr(out[0]), uintptr(out[1])}, more...),
	}
	if s.spec.Cage == nil {
		pid, err = s.fork(file, argv, attr)
	} else {
		s.apart.call(func() {
			if err = freshKeyring(); err == nil {
				pid, err = s.fork(file, argv, attr)
			}
		})
	}
	if err != nil {
		return 0, notStarted(file, err)
	}
	return pid, nil
}

// fork starts the file in its own process group and, if there is one, its cgroup.
func (s *shim) fork(file string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	startIn(attr.Sys, s.next.cgroupFd)
	pid, err = syscall.ForkExec(file, argv, attr)
	if err != nil && s.next.cgroupFd >= 0 {
		// Some kernels and containers allow creating a cgroup but not starting anything in it. A
		// failed exec fails again here.
		attr.Sys = &syscall.SysProcAttr{Setpgid: true}
		pid, err = syscall.ForkExec(file, argv, attr)
	}
	return pid, err
}

// notStarted says why the system did not start a file that is there, and what to do.
func notStarted(file string, err error) error {
	advice, command := "check that it can be run by hand", true
	switch {
	case errors.Is(err, syscall.ENOENT):
		advice = "the interpreter in its first line or its loader is missing: install it"
	case errors.Is(err, syscall.EACCES):
		advice = "make it executable (chmod +x), on a file system that is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		advice = `not a program for this system: a script needs a first line such as "#!/bin/sh"`
	case errors.Is(err, syscall.E2BIG):
		advice, command = "its arguments and environment are too large: pass large texts in files", false
	default:
		command = false
	}
	err = fmt.Errorf("command %s: %w: %s", file, err, advice)
	if command {
		return &CommandError{err}
	}
	return err
}

func withPwd(spec Spec) []string {
	if slices.ContainsFunc(spec.Env, func(kv string) bool { return strings.HasPrefix(kv, "PWD=") }) {
		return spec.Env
	}
	return append(slices.Clone(spec.Env), "PWD="+spec.Cwd)
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
