package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenInside listens at addresses of the network of process pid, to which this process does not
// belong. A socket stays in the network where it was created, so a helper process enters, creates
// it and exits. This needs only the creator's rights over the network's user namespace, or root.
func listenInside(pid int, addresses []string) (all []net.Listener, err error) {
	network, err := networkOf(pid)
	if err != nil {
		return nil, err
	}
	defer network.Close()
	owner, err := unix.IoctlRetInt(int(network.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, fmt.Errorf("whose it is: %w", err)
	}
	defer unix.Close(owner)
	for _, address := range addresses {
		l, err := listenAt(owner, int(network.Fd()), address)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// networkOf opens the network of a process. The kernel refuses access while a process is ending, so
// it retries for a second until the process is gone.
func networkOf(pid int) (*os.File, error) {
	for again := 0; ; again++ {
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			return network, nil
		}
		state, gone := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(state), ") ")
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), errors.Is(gone, fs.ErrNotExist),
			strings.HasPrefix(after, "Z"):
			return nil, errGone
		case !errors.Is(err, fs.ErrPermission) || again == 100:
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// listenAt listens at one address of the network.
func listenAt(owner, network int, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		to = &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	} else {
		family = unix.AF_INET6
	}
	fd, err := socketIn(owner, network, family)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), address)
	defer f.Close() // the listener has its own
	// The loopback may not be up yet, and have no address: bind nevertheless.
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1)
	} else {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		return nil, err
	}
	return net.FileListener(f)
}

// socketIn creates a stream socket in the network.
func socketIn(owner, network, family int) (fd int, err error) {
	// A placeholder: the helper process shares the descriptors and replaces this one with the
	// socket.
	fd, err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	// A signal in the other process would run this one's handlers there.
	if err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		unix.Close(fd)
		return -1, err
	}
	pid, errno := enter(uintptr(owner), uintptr(network), uintptr(family), uintptr(fd))
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if errno != 0 {
		unix.Close(fd)
		return -1, errno
	}
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(int(pid), &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if err == nil && status.ExitStatus() != 0 {
		err = fmt.Errorf("a socket in it: %w", syscall.Errno(max(status.ExitStatus(), 1)))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// enter clones a process that creates a socket in the network and puts it in place of the
// descriptor fd, which both share. Its exit code is the error number, or 0. That process is a copy
// of one thread, so no Go runtime code may run in it: it makes only system calls, and the stack
// must not grow.
//
//go:norace
//go:nosplit
//go:noinline
func enter(owner, network, family, fd uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, syscall.CLONE_FILES|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	var made uintptr
	// A process that is already root in the network's user namespace need not enter it.
	_, _, first := syscall.RawSyscall(unix.SYS_SETNS, owner, unix.CLONE_NEWUSER, 0)
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, network, unix.CLONE_NEWNET, 0); errno != 0 && first != 0 {
		errno = first
	}
	if errno == 0 {
		made, _, errno = syscall.RawSyscall(unix.SYS_SOCKET, family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_DUP3, made, fd, unix.O_CLOEXEC)
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, made, 0, 0)
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}
