//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/tools/conform"
)

// callsCommand has the test binary make system calls: see callsMain.
const callsCommand = "__calls"

// call is a system call and its expected result inside.
type call struct {
	name string
	nr   uintptr
	args [6]uintptr
	want syscall.Errno
}

// denied returns calls with arguments for which the kernel's answer differs from the filter's, even
// without rights.
func denied() []call {
	const none = ^uintptr(0) // an invalid descriptor, and an invalid pointer
	var out []call
	deny := func(name string, nr uintptr, args ...uintptr) {
		c := call{name: name, nr: nr, want: syscall.EPERM}
		copy(c.args[:], args)
		out = append(out, c)
	}
	deny("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(3), 0) // the user's keyring
	deny("add_key", unix.SYS_ADD_KEY, none, none, none, 1, none)
	deny("request_key", unix.SYS_REQUEST_KEY, none, none)
	deny("bpf", unix.SYS_BPF, 0, none, 1<<20)
	deny("perf_event_open", unix.SYS_PERF_EVENT_OPEN, none, 0, 0, none, 0)
	deny("userfaultfd", unix.SYS_USERFAULTFD, none)
	deny("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, none)
	deny("io_uring_enter", unix.SYS_IO_URING_ENTER, none)
	deny("io_uring_register", unix.SYS_IO_URING_REGISTER, none)
	deny("kexec_load", unix.SYS_KEXEC_LOAD)
	deny("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD)
	deny("mount", unix.SYS_MOUNT, none, none, none)
	deny("umount2", unix.SYS_UMOUNT2, none, none)
	deny("pivot_root", unix.SYS_PIVOT_ROOT, none, none)
	deny("open_tree", unix.SYS_OPEN_TREE, none, none, none)
	deny("open_tree_attr", unix.SYS_OPEN_TREE_ATTR, none, none, none)
	deny("move_mount", unix.SYS_MOVE_MOUNT, none, none, none, none, none)
	deny("fsopen", unix.SYS_FSOPEN, none, none)
	deny("fsconfig", unix.SYS_FSCONFIG, none, none)
	deny("fsmount", unix.SYS_FSMOUNT, none, none)
	deny("fspick", unix.SYS_FSPICK, none, none, none)
	deny("mount_setattr", unix.SYS_MOUNT_SETATTR, none, none, none, none, none)
	deny("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, none, none, none)
	deny("setns", unix.SYS_SETNS, none, 0)
	deny("pidfd_getfd", unix.SYS_PIDFD_GETFD, none, 0, 0)
	for _, f := range namespaceFlags() {
		deny(fmt.Sprintf("unshare %#x", f), unix.SYS_UNSHARE, f)
		if f != unix.CLONE_NEWTIME { // in clone these bits are a signal
			deny(fmt.Sprintf("clone %#x", f), unix.SYS_CLONE, f|uintptr(syscall.SIGCHLD))
		}
	}
	for _, family := range []uintptr{unix.AF_VSOCK, unix.AF_PACKET, unix.AF_ALG, unix.AF_CAN, unix.AF_XDP, unix.AF_TIPC} {
		deny(fmt.Sprintf("socket %d", family), unix.SYS_SOCKET, family, unix.SOCK_DGRAM)
		deny(fmt.Sprintf("socketpair %d", family), unix.SYS_SOCKETPAIR, family, unix.SOCK_DGRAM, 0, none)
	}
	deny("ptrace seize 1", unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, none)
	deny("process_vm_readv 1", unix.SYS_PROCESS_VM_READV, 1, none, 1, none, 1)
	deny("process_vm_writev 1", unix.SYS_PROCESS_VM_WRITEV, 1, none, 1, none, 1)
	out = append(out, call{name: "clone3", nr: unix.SYS_CLONE3, args: [6]uintptr{none, 1 << 20}, want: syscall.ENOSYS})
	return out
}

func namespaceFlags() []uintptr {
	return []uintptr{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWTIME}
}

// callsMain makes the denied calls, and those that programs need; it prints wrong results.
func callsMain(args []string) int {
	if len(args) > 0 {
		return foreignMain(args[0])
	}
	runtime.LockOSThread()
	for _, c := range denied() {
		r, _, errno := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if errno == 0 && r == 0 && c.nr == unix.SYS_CLONE {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child, which should not exist
		}
		if errno != c.want {
			fmt.Printf("%s: %v (%d), want %v\n", c.name, errno, r, c.want)
		}
	}
	for name, family := range map[string]int{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6, "netlink": unix.AF_NETLINK} {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		if err != nil && name != "inet6" {
			fmt.Printf("socket %s: %v\n", name, err)
		}
		_ = unix.Close(fd)
	}
	if _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
		fmt.Printf("socketpair: %v\n", err)
	}
	if err := traced(); err != nil {
		fmt.Printf("a debugger: %v\n", err)
	}
	fmt.Println("made")
	return 0
}

// traced attaches to a child as a debugger, and lets a child request tracing.
func traced() error {
	for _, asks := range []bool{false, true} {
		cmd := exec.Command("/bin/sleep", "100")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: asks}
		if err := cmd.Start(); err != nil {
			return err
		}
		pid := cmd.Process.Pid
		defer cmd.Wait()
		defer cmd.Process.Kill()
		if !asks {
			if err := unix.PtraceSeize(pid); err != nil {
				return fmt.Errorf("seize: %w", err)
			}
			continue
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
			return fmt.Errorf("it does not stop: %v %v", status, err)
		}
	}
	return nil
}

// foreignMain makes a system call by another machine's rules; 7 means that it was allowed.
func foreignMain(how string) int {
	if how == "x32" {
		_, _, errno := syscall.RawSyscall(0x40000000+39, 0, 0, 0) // getpid
		fmt.Println("x32:", errno)
		return 7
	}
	return 1
}

// TestCalls makes each call inside.
func TestCalls(t *testing.T) {
	conform.Rule(t, "4-trust calls", "each is denied, and what programs and debuggers need is not")
	if got := held(t, planOf(t), "timeout 20 "+Tool+" "+callsCommand+"; exit 0"); got != "made\n" {
		t.Errorf("%s", got)
	}
}

// TestForeignCalls: a process that uses another machine's calling rules is killed, because the
// filter knows only one machine's.
func TestForeignCalls(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("kernel: runs no other machine's programs")
	}
	conform.Rule(t, "4-trust calls", "those of another machine end the process")
	p := planOf(t)
	program := filepath.Join(p.Cwd, "small")
	check(t, os.WriteFile(program, smallELF(), 0o755))
	if err := exec.Command(program).Run(); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Skipf("kernel: runs no 32-bit programs: %v", err)
	}
	got := held(t, p, "./small; echo $?; "+Tool+" "+callsCommand+" x32 >/dev/null; echo $?")
	if strings.Count(got, "159\n") != 2 { // 128 + SIGSYS
		t.Errorf("%s", got)
	}
}

// smallELF is a 32-bit program for x86 that ends with 7.
func smallELF() []byte {
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80} // eax = exit, ebx = 7, int 0x80
	const base, head = 0x8048000, 52 + 32
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	half := func(v ...uint16) {
		for _, x := range v {
			b.Write([]byte{byte(x), byte(x >> 8)})
		}
	}
	word := func(v ...uint32) {
		for _, x := range v {
			half(uint16(x), uint16(x>>16))
		}
	}
	half(2, 3) // a program, of an i386
	word(1, base+head, 52, 0, 0)
	half(52, 32, 1, 0, 0, 0)
	size := uint32(head + len(code))
	word(1, 0, base, base, size, size, 5, 0x1000)
	b.Write(code)
	return b.Bytes()
}

// TestNoCapability: no process in the sandbox has one, or can get one, not even bubblewrap's own.
func TestNoCapability(t *testing.T) {
	conform.Rule(t, "4-trust calls", "no process inside has a capability, and each is filtered")
	got := held(t, planOf(t), `for p in /proc/[0-9]*; do grep -H "^Cap\|^NoNewPrivs\|^Seccomp:" $p/status; done`)
	seen := 0
	for line := range strings.Lines(got) {
		fields := strings.Fields(line[strings.Index(line, "status:")+len("status:"):])
		want := "0000000000000000"
		switch fields[0] {
		case "NoNewPrivs:":
			want = "1"
		case "Seccomp:":
			want = "2"
		}
		if seen++; fields[1] != want {
			t.Errorf("%s", line)
		}
	}
	if seen < 2*7 {
		t.Errorf("%s", got)
	}
}
