package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

const (

	// openSafely opens a path that an agent can reach: it neither follows a link nor waits for a
	// pipe's writer.
	openSafely = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

	waitAll = unix.WALL // also children whose exit signal is not SIGCHLD

	maxStatBytes    = 4 << 10
	maxEnvironBytes = 4 << 20
	maxProcs        = 1 << 20
)

// proc is one process in the system's table.
type proc struct {
	pid, ppid int
	start     string // clock ticks since boot
	dead      bool   // a zombie
}

// BootID identifies the time since the machine's start: no process is older.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.New("mount /proc", "boot id: %w", err)
	}
	return string(bytes.TrimSpace(data)), nil
}

// Uptime returns how long the machine has been up, including sleep. Clock changes do not affect it.
func Uptime() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return 0, fmt.Errorf("time since the machine's start: %w", err)
	}
	return time.Duration(at.Nano()), nil
}

// lookProc reads one process from /proc/PID/stat; os.ErrNotExist means that there is none.
func lookProc(pid int) (proc, error) {
	data, err := readProc(pid, "stat", maxStatBytes)
	if err != nil {
		return proc{}, err
	}
	// The second field is the name in brackets, which may contain spaces and brackets itself: see
	// proc(5). fields begins with the third, the state.
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return proc{}, fmt.Errorf("/proc/%d/stat: %d fields: want 20", pid, len(fields))
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return proc{}, fmt.Errorf("/proc/%d/stat: parent %q", pid, fields[1])
	}
	// A process whose first thread alone has ended is a zombie too: its number of threads is above 1.
	dead := fields[0] == "X" || fields[0] == "Z" && (fields[17] == "0" || fields[17] == "1")
	return proc{pid: pid, ppid: ppid, start: fields[19], dead: dead}, nil
}

func readProc(pid int, name string, limit int) ([]byte, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
	if errors.Is(err, syscall.ESRCH) { // also for the environment of a kernel thread
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var data []byte
	buf := make([]byte, 4<<10)
	for len(data) < limit {
		n, err := f.Read(buf)
		data = append(data, buf[:n]...)
		if errors.Is(err, syscall.ESRCH) { // it ended meanwhile
			return nil, os.ErrNotExist
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// pids lists the processes, in the table's order.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxProcs)
	if err != nil {
		return nil, err
	}
	list := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}

// environ returns the environment with which a process called execve, NUL-separated. A process can
// overwrite it: see proc(5), /proc/PID/environ.
func environ(pid int) ([]byte, error) {
	return readProc(pid, "environ", maxEnvironBytes)
}

// children lists this process's children, dead ones too; ok is false if the kernel does not report
// them (CONFIG_PROC_CHILDREN).
func children() (list []int, ok bool) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}
	for _, task := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread ended, or there is no such file
		}
		ok = true
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list, ok
}

// becomeSubreaper makes orphans of the tree, daemonised ones too, children of this process
// (prctl(2), since Linux 3.4), and reports success. Children do not inherit it.
func becomeSubreaper() bool {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// closeInherited closes descriptors that came over exec. Everything this process opened, including
// the runtime's descriptors, is close-on-exec; inherited ones cannot be.
func closeInherited() {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// handle is one process and never a later one with the same pid: see pidfd_open(2), since Linux
// 5.3.
type handle struct {
	pid int
	fd  int // pidfd, or -1 if the kernel has none; then only the caller's check just before use protects
}

// open opens a handle; os.ErrNotExist means there is no such process. It does not verify which
// process it is: check after opening, then use.
func open(pid int) (handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return handle{pid, -1}, nil
	}
	// EINVAL, before Linux 6.15: the number now belongs to a thread.
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		return handle{}, os.ErrNotExist
	}
	if err != nil {
		return handle{}, os.NewSyscallError("pidfd_open", err)
	}
	return handle{pid, fd}, nil
}

func (h handle) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
	}
}

// signal sends sig. A process that is gone is not an error.
func (h handle) signal(sig syscall.Signal) error {
	var err error
	if h.fd >= 0 {
		err = unix.PidfdSendSignal(h.fd, sig, nil, 0)
	} else {
		err = unix.Kill(h.pid, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// reap collects the process if it is a dead child of this one.
func (h handle) reap() {
	if h.fd >= 0 {
		_ = unix.Waitid(unix.P_PIDFD, h.fd, nil, unix.WEXITED|unix.WNOHANG|unix.WALL, nil)
		return
	}
	_, _ = unix.Wait4(h.pid, nil, unix.WNOHANG|unix.WALL, nil)
}

// wait returns as soon as the process has ended. Without pidfds it polls gone.
func (h handle) wait(ctx context.Context, gone func() bool) error {
	if h.fd < 0 {
		return pollGone(ctx, gone)
	}
	// The runtime's poller accepts only a non-blocking descriptor and closes it, so it gets its
	// own.
	fd, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return pollGone(ctx, gone)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return pollGone(ctx, gone)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil {
		return pollGone(ctx, gone)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 && err == nil
	})
	if cerr := ctx.Err(); err != nil && cerr != nil {
		return cerr
	}
	if err != nil {
		return pollGone(ctx, gone)
	}
	return nil
}

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// moveNew renames a file unless the target exists: fs.ErrExist. It is one operation on the folder;
// a link and an unlink are two.
func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // unsupported by the file system or kernel
		return linkNew(from, to)
	}
	return err
}

// canLinkOpen reports whether linkOpen works on this system.
const canLinkOpen = true

// linkOpen gives an open file another name unless that exists: fs.ErrExist.
func linkOpen(fd int, to string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
}

// pipe creates a pipe with a non-blocking read end, for the runtime's poller. Writers block when it
// is full.
func pipe() (*os.File, int, error) {
	var fds [2]int
	err := unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return reader(fds, err)
}

// sealed is pipe with a socket, which no process can open by a name.
func sealed() (*os.File, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return reader(fds, err)
}

// reader makes the first of two descriptors the reading end.
func reader(fds [2]int, err error) (*os.File, int, error) {
	if err != nil {
		return nil, -1, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, -1, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "output"), fds[1], nil
}

// runsProgram reports whether the process runs the program at that path.
func runsProgram(pid int, program string) bool {
	exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	want, err := os.Stat(program)
	return err == nil && os.SameFile(exe, want)
}
