//go:build linux

package agents

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// stampProgram creates a program that first reads the monotonic clock and then writes it to
// standard output: a complete ELF file of 180 bytes, so that the benchmark measures the start and
// not a libc.
func stampProgram(tb testing.TB) string {
	tb.Helper()
	const base, headers = 0x400000, 64 + 56
	code := []byte{
		0x48, 0x83, 0xec, 0x10, // sub rsp, 16
		0xb8, 228, 0, 0, 0, // mov eax, clock_gettime
		0xbf, 1, 0, 0, 0, // mov edi, CLOCK_MONOTONIC
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0x0f, 0x05, // syscall
		0xb8, 1, 0, 0, 0, // mov eax, write
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 16, 0, 0, 0, // mov edx, 16
		0x0f, 0x05, // syscall
		0xb8, 60, 0, 0, 0, // mov eax, exit
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	}
	size := uint64(headers + len(code))
	le := binary.LittleEndian
	elf := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, half := range []uint16{2, 62} { // an executable, of x86-64
		elf = le.AppendUint16(elf, half)
	}
	elf = le.AppendUint32(elf, 1)
	for _, word := range []uint64{base + headers, 64, 0} { // entry, program headers, no sections
		elf = le.AppendUint64(elf, word)
	}
	elf = le.AppendUint32(elf, 0)
	for _, half := range []uint16{64, 56, 1, 0, 0, 0} {
		elf = le.AppendUint16(elf, half)
	}
	elf = le.AppendUint32(le.AppendUint32(elf, 1), 5) // to be loaded, read and run
	for _, word := range []uint64{0, base, base, size, size, 0x1000} {
		elf = le.AppendUint64(elf, word)
	}
	file := filepath.Join(tb.TempDir(), "stamp")
	if err := os.WriteFile(file, append(elf, code...), 0o700); err != nil {
		tb.Fatal(err)
	}
	return file
}
