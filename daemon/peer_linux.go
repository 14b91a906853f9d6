package daemon

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end of the socket.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// lockedBy returns the process that has the lock of a folder, as /proc/locks says; 0 = it does not, as
// with a process of another PID namespace (proc_locks(5)).
func lockedBy(dir string) (pid int) {
	var st unix.Stat_t
	all, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Stat(dir, &st) != nil {
		return 0
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(all)) { // 1: FLOCK  ADVISORY  WRITE 167 00:1b:7233391 0 EOF
		if f := strings.Fields(line); len(f) > 5 && f[1] == "FLOCK" && f[5] == file {
			_, _ = fmt.Sscan(f[4], &pid) // 0 = unknown
		}
	}
	return max(pid, 0)
}
