package serve

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram removes the pages of the program's file from this process. Most were only needed to start. They
// stay in the page cache, and a page that is used again is mapped from there (madvise(2), MADV_DONTNEED).
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, _ := os.ReadFile("/proc/self/smaps") // proc_pid_smaps(5); without it, the pages stay
	var from, to uint64
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		switch place, end, mapping := strings.Cut(f[0], "-"); {
		case mapping:
			from, to = 0, 0
			if !strings.Contains(f[1], "w") && strings.HasSuffix(line, " "+program+"\n") {
				from, _ = strconv.ParseUint(place, 16, 64)
				to, _ = strconv.ParseUint(end, 16, 64)
			}
		case f[0] == "Anonymous:" && f[1] == "0": // else pages differ from the file: relocated, a debugger's
			_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED)
		}
	}
}
