//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The kernel's actions for a system call: see seccomp(2).
const (
	callAllowed = 0x7fff0000
	callDenied  = 0x00050000 | uint32(unix.EPERM)
	callUnknown = 0x00050000 | uint32(unix.ENOSYS)
	callFatal   = 0x80000000 // ends the process
)

// Offsets of a call's number, its machine, and the lower half of each argument (both machines are
// little-endian).
const (
	callNumber  = 0
	callMachine = 4
	callArgs    = 16
)

// namespaces are the flags of clone and unshare that create one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// neverMade returns the calls denied to everything inside: keys of the user, which are the
// machine's; the kernel's own programs and counters; mounts and namespaces; files by number; what
// another process has open; and io_uring, whose work no filter sees.
func neverMade() []uint32 {
	return []uint32{
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD,
	}
}

// filter returns the program that bubblewrap passes to the kernel for everything inside.
func filter() ([]byte, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callMachine, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: machine, SkipTrue: 1},
		bpf.RetConstant{Val: callFatal},
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreignCalls, SkipTrue: 1},
		bpf.RetConstant{Val: callFatal},
	}
	on := func(call uint32, then ...bpf.Instruction) { // then ends the filter, or is skipped
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(then))})
		p = append(p, then...)
	}
	for _, call := range neverMade() {
		on(call, bpf.RetConstant{Val: callDenied})
	}
	// its flags are in memory that filters cannot read; callers fall back to clone
	on(unix.SYS_CLONE3, bpf.RetConstant{Val: callUnknown})
	on(unix.SYS_CLONE, unless(0, bpf.JumpBitsNotSet, namespaces)...)
	on(unix.SYS_UNSHARE, unless(0, bpf.JumpBitsNotSet, namespaces|unix.CLONE_NEWTIME)...)
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		on(call, onlyValues(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)...)
	}
	// Debuggers may only attach to what was started inside; process 1 is bubblewrap's own.
	on(unix.SYS_PTRACE, append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: callArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PTRACE_ATTACH, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PTRACE_SEIZE, SkipTrue: 1},
		bpf.RetConstant{Val: callAllowed},
	}, unless(1, bpf.JumpNotEqual, 1)...)...)
	for _, call := range []uint32{unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV} {
		on(call, unless(0, bpf.JumpNotEqual, 1)...)
	}
	p = append(p, bpf.RetConstant{Val: callAllowed})
	raw, err := bpf.Assemble(p)
	if err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, raw); err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	return out.Bytes(), nil
}

func argument(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: callArgs + 8*n, Size: 4} }

// unless denies a call whose argument fails the test.
func unless(arg uint32, test bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		argument(arg),
		bpf.JumpIf{Cond: test, Val: value, SkipTrue: 1},
		bpf.RetConstant{Val: callDenied},
		bpf.RetConstant{Val: callAllowed},
	}
}

// onlyValues allows a call whose argument is one of the values.
func onlyValues(arg uint32, values ...uint32) []bpf.Instruction {
	out := []bpf.Instruction{argument(arg)}
	for i, v := range values {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(out, bpf.RetConstant{Val: callDenied}, bpf.RetConstant{Val: callAllowed})
}
