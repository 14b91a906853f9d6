//go:build unix

package serve

import (
	"fmt"
	"os"
	"syscall"
)

// toJournal reports whether the file is systemd's stream to journald, named "device:inode".
// Processes below a service inherit the variable, often with another file.
func toJournal(f *os.File, stream string) bool {
	info, err := f.Stat()
	if err != nil || stream == "" {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && fmt.Sprintf("%d:%d", st.Dev, st.Ino) == stream
}
