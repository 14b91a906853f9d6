// Package mutant is what instrumented conditions call: see tools/mutate. Only builds that mutate makes import it.
//
// Two files beside the program say what is wanted, so that a change of the environment cannot keep it from a helper
// process: MUTANT has the number of the condition to flip, and in SEEN each condition that is evaluated leaves a mark.
package mutant

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Slot is how many bytes of SEEN belong to one condition.
const Slot = 4

var flipped, seen = load()

func load() (int, []byte) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return -1, nil
	}
	dir := filepath.Dir(exe)
	number, marks := -1, []byte(nil)
	if raw, err := os.ReadFile(filepath.Join(dir, "MUTANT")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			number = n
		}
	}
	if f, err := os.OpenFile(filepath.Join(dir, "SEEN"), os.O_RDWR, 0); err == nil {
		if info, err := f.Stat(); err == nil {
			// Shared memory: the marks of a process that is killed stay.
			marks, _ = syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		}
		_ = f.Close()
	}
	return number, marks
}

func mark(n int) {
	if at := (*uint32)(unsafe.Pointer(&seen[n*Slot])); atomic.LoadUint32(at) == 0 {
		atomic.StoreUint32(at, 1)
	}
}

// If returns the condition n, or its opposite where n is to be flipped.
func If[B ~bool](n int, condition B) B {
	if seen != nil {
		mark(n)
	}
	return condition != B(n == flipped)
}

// For is If for a loop: its opposite would never end, so that the flipped one does not begin.
func For[B ~bool](n int, condition B) B {
	if seen != nil {
		mark(n)
	}
	return condition && B(n != flipped)
}
