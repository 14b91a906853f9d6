package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	openSafely = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	waitAll    = 0

	zombie = 5 // SZOMB
	maxFds = 4096
)

// proc is one process in the system's table.
type proc struct {
	pid, ppid int
	start     string // seconds and microseconds of wall time
	dead      bool
}

// BootID identifies the time since the machine's start: no process is older.
func BootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return id, nil
}

// Uptime returns how long the machine has been up, including sleep. Clock changes do not affect it.
func Uptime() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		return 0, fmt.Errorf("time since the machine's start: %w", err)
	}
	return time.Duration(at.Nano()), nil
}

func lookProc(pid int) (proc, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return proc{}, os.ErrNotExist
	}
	start := info.Proc.P_starttime
	return proc{
		pid:   pid,
		ppid:  int(info.Eproc.Ppid),
		start: strconv.FormatInt(start.Sec, 10) + "." + strconv.FormatInt(int64(start.Usec), 10),
		dead:  info.Proc.P_stat == zombie,
	}, nil
}

func pids() ([]int, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	list := make([]int, 0, len(infos))
	for _, info := range infos {
		list = append(list, int(info.Proc.P_pid))
	}
	return list, nil
}

// environ also returns the path and the arguments, which come first. It works only for processes of
// the same user.
func environ(pid int) ([]byte, error) {
	return unix.SysctlRaw("kern.procargs2", pid)
}

// children is unavailable here.
func children() (list []int, ok bool) { return nil, false }

// macOS has no subreaper: daemonised processes go to launchd and are found by the token.
func becomeSubreaper() bool { return false }

// closeInherited closes descriptors that came over exec: this process's own are close-on-exec.
func closeInherited() {
	for fd := 3; fd < maxFds; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// handle is a process by pid. There are no pidfds, so only the caller's check just before use
// protects against reuse.
type handle struct{ pid int }

func open(pid int) (handle, error) { return handle{pid}, nil }

func (h handle) close() {}

func (h handle) signal(sig syscall.Signal) error {
	if err := unix.Kill(h.pid, sig); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

func (h handle) reap() { _, _ = unix.Wait4(h.pid, nil, unix.WNOHANG, nil) }

// wait returns when the process has ended. kqueue works for any process, not only children.
func (h handle) wait(ctx context.Context, gone func() bool) error {
	kq, err := unix.Kqueue()
	if err != nil {
		return pollGone(ctx, gone)
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	change := []unix.Kevent_t{{Ident: uint64(h.pid), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	events := make([]unix.Kevent_t, 1)
	for {
		limit := unix.NsecToTimespec(int64(pollMax))
		n, err := unix.Kevent(kq, change, events, &limit)
		change = nil
		if err != nil && !errors.Is(err, unix.EINTR) {
			return pollGone(ctx, gone)
		}
		if n > 0 || gone() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func dup(from, to int) error { return unix.Dup2(from, to) }

const canLinkOpen = false // each launch has a file of its own

func linkOpen(int, string) error { return unix.ENOTSUP }

// moveNew renames a file unless the target exists: fs.ErrExist.
func moveNew(from, to string) error { return linkNew(from, to) }

// pipe creates a pipe with a non-blocking read end, for the runtime's poller. Writers block when it
// is full.
func pipe() (*os.File, int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return nil, -1, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, -1, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "output"), fds[1], nil
}

// sealed is pipe: here a pipe of another process has no name.
func sealed() (*os.File, int, error) { return pipe() }

// runsProgram reports whether the process runs the program at that path. sandbox-exec never counts:
// by then it has become the command.
func runsProgram(int, string) bool { return false }
