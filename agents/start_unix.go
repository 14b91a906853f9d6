//go:build linux || darwin

package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultPath = "/usr/local/bin:/usr/bin:/bin" // where Env has no PATH
	drainBytes  = 64 << 10
)

// streams are the command's standard files and what keeps its output.
type streams struct {
	stdin   *os.File
	readers []*os.File
	writers []*os.File
	sinks   []*sink
	drains  sync.WaitGroup
}

// openStreams opens standard input and makes the pipes of the outputs; they
// are drained from here on.
func openStreams(spec Spec) (*streams, error) {
	st := &streams{}
	stdin, err := openStdin(spec.Stdin)
	if err != nil {
		return nil, err
	}
	st.stdin = stdin
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			st.closeAll()
			return nil, fmt.Errorf("pipe: %w: raise the limit of open files", err)
		}
		st.readers, st.writers = append(st.readers, r), append(st.writers, w)
	}
	for i, name := range []string{stdoutFile, stderrFile} {
		keep, from := newSink(filepath.Join(spec.Dir, name), spec.MaxOutput), st.readers[i]
		st.sinks = append(st.sinks, keep)
		st.drains.Go(func() { drain(keep, from) })
	}
	return st, nil
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

func openStdin(name string) (*os.File, error) {
	if name == "" {
		name = os.DevNull
	}
	// Non-blocking only to open: a pipe without a writer must not hold us.
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("standard input %s: %w: name a file that can be read", name, err)
	}
	_ = unix.SetNonblock(fd, false)
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && name != os.DevNull {
		err = fmt.Errorf("standard input %s: %s: name a regular file", name, info.Mode().Type())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (st *streams) closeWriters() {
	for _, w := range append(st.writers, st.stdin) {
		w.Close()
	}
}

func (st *streams) closeAll() {
	st.closeWriters()
	for _, r := range st.readers {
		r.Close()
	}
}

// finish drains what is left and joins the files. The tree is gone, so the
// end of each pipe comes at once, unless something outside of it holds one.
func (st *streams) finish() {
	for _, r := range st.readers {
		_ = r.SetReadDeadline(time.Now().Add(drainLimit))
	}
	st.drains.Wait()
	for i, r := range st.readers {
		r.Close()
		st.sinks[i].close()
	}
}

// start starts the command in a process group of its own and, where there is
// one, its cgroup. An error says what and what to do.
func (s *shim) start(st *streams) (pid int, err error) {
	info, err := os.Stat(s.spec.Cwd)
	if err != nil {
		return 0, fmt.Errorf("folder %s: %w: make it or name another", s.spec.Cwd, bare(err))
	}
	if !info.IsDir() {
		return 0, fmt.Errorf("folder %s: not a folder: name one", s.spec.Cwd)
	}
	file, err := lookUp(s.spec)
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{
		Dir:   s.spec.Cwd,
		Env:   withPwd(s.spec),
		Files: []uintptr{st.stdin.Fd(), st.writers[0].Fd(), st.writers[1].Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	for _, fd := range attr.Files[1:] {
		_ = unix.SetNonblock(int(fd), false) // the command expects to wait when the pipe is full
	}
	done := startIn(attr.Sys, s.id.Cgroup)
	pid, err = syscall.ForkExec(file, s.spec.Argv, attr)
	done()
	if err != nil && s.id.Cgroup != "" {
		// A kernel or a container may let a cgroup be made but nothing be
		// started in it. That exec itself failed shows again here.
		attr.Sys = &syscall.SysProcAttr{Setpgid: true}
		pid, err = syscall.ForkExec(file, s.spec.Argv, attr)
	}
	if err != nil {
		return 0, fmt.Errorf("command %s: %w: %s", file, err, mend(err))
	}
	return pid, nil
}

func mend(err error) string {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return "the interpreter in its first line or its loader is missing: install it"
	case errors.Is(err, syscall.EACCES):
		return "make it executable (chmod +x), on a file system that is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		return `not a program for this system: a script needs a first line such as "#!/bin/sh"`
	case errors.Is(err, syscall.E2BIG):
		return "its arguments and environment are too large: pass large texts in files"
	default:
		return "see that it can be run by hand"
	}
}

// lookUp finds the file of argv[0].
func lookUp(spec Spec) (string, error) {
	name := spec.Argv[0]
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(spec.Cwd, file)
		}
		if err := runnable(file); err != nil {
			return "", fmt.Errorf("command %s: %w", file, err)
		}
		return file, nil
	}
	search := defaultPath
	for _, kv := range spec.Env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	var near error
	for dir := range strings.SplitSeq(search, ":") {
		if !filepath.IsAbs(dir) {
			continue // would run what lies in the folder an agent works in
		}
		file := filepath.Join(dir, name)
		err := runnable(file)
		if err == nil {
			return file, nil
		}
		if near == nil && !errors.Is(err, os.ErrNotExist) {
			near = fmt.Errorf("command %s: %w", file, err)
		}
	}
	if near != nil {
		return "", near
	}
	return "", fmt.Errorf("command %q: not found in PATH=%s: install it, or give its full path", name, search)
}

func runnable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("%w: install it or mend the path", bare(err))
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a file: give the path of a program")
	}
	if unix.Access(file, unix.X_OK) != nil {
		return errors.New("not executable: chmod +x it")
	}
	return nil
}

// bare is the cause without the path, which the message names itself.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func withPwd(spec Spec) []string {
	for _, kv := range spec.Env {
		if strings.HasPrefix(kv, "PWD=") {
			return spec.Env
		}
	}
	return append(append([]string(nil), spec.Env...), "PWD="+spec.Cwd)
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
