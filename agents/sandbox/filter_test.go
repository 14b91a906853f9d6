//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilter runs the filter like the kernel, with calls that this kernel may lack.
func TestFilter(t *testing.T) {
	data, err := filter()
	check(t, err)
	raw := make([]bpf.RawInstruction, len(data)/8)
	check(t, binary.Read(bytes.NewReader(data), binary.LittleEndian, raw))
	program, all := bpf.Disassemble(raw)
	if !all {
		t.Fatal("it cannot be read")
	}
	vm, err := bpf.NewVM(program)
	check(t, err)
	run := func(arch uint32, nr uint32, args ...uint64) uint32 {
		t.Helper()
		var b bytes.Buffer // the filter has the machine's byte order; the tool uses the network's
		put := func(v ...uint32) { check(t, binary.Write(&b, binary.BigEndian, v)) }
		put(nr, arch, 0, 0)
		for i := range 6 {
			var v uint64
			if i < len(args) {
				v = args[i]
			}
			put(uint32(v), uint32(v>>32))
		}
		got, err := vm.Run(b.Bytes())
		check(t, err)
		return uint32(got)
	}
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"read", unix.SYS_READ, nil, callAllowed},
		{"the last call there is", 0x3fffffff, nil, callAllowed},
		{"clone of a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_THREAD}, callAllowed},
		{"clone of a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, callAllowed},
		{"clone with more bits", unix.SYS_CLONE, []uint64{1<<40 | unix.CLONE_NEWUSER}, callDenied},
		{"unshare of files", unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, callAllowed},
		{"unshare of time", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWTIME}, callDenied},
		{"socket of a family with more bits", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_VSOCK}, callDenied},
		{"socket of no family", unix.SYS_SOCKET, []uint64{0}, callDenied},
		{"socket that is local", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_UNIX}, callAllowed},
		{"trace me", unix.SYS_PTRACE, []uint64{unix.PTRACE_TRACEME}, callAllowed},
		{"attach", unix.SYS_PTRACE, []uint64{unix.PTRACE_ATTACH, 77}, callAllowed},
		{"attach to bubblewrap", unix.SYS_PTRACE, []uint64{unix.PTRACE_ATTACH, 1}, callDenied},
		{"the same with more bits", unix.SYS_PTRACE, []uint64{unix.PTRACE_ATTACH, 1<<32 | 1}, callDenied},
		{"seize bubblewrap", unix.SYS_PTRACE, []uint64{unix.PTRACE_SEIZE, 1}, callDenied},
		{"memory of another", unix.SYS_PROCESS_VM_READV, []uint64{77}, callAllowed},
		{"memory of bubblewrap", unix.SYS_PROCESS_VM_WRITEV, []uint64{1}, callDenied},
		{"clone3", unix.SYS_CLONE3, nil, callUnknown},
	} {
		if got := run(machine, c.nr, c.args...); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, nr := range neverMade() {
		if got := run(machine, nr); got != callDenied {
			t.Errorf("call %d: %#x", nr, got)
		}
	}
	const i386 = 0x40000003
	if got := run(i386, unix.SYS_READ); got != callFatal {
		t.Errorf("another machine: %#x", got)
	}
	if got := run(machine, 0x40000000); machine == 0xc000003e && got != callFatal {
		t.Errorf("x32: %#x", got)
	}
}
