//go:build unix

package serve

import (
	"fmt"
	"os"
	"syscall"
)

// reloadSignals are those at which the daemon reads its settings again.
func reloadSignals() []os.Signal { return []os.Signal{syscall.SIGHUP} }

// toJournal says that the file is the stream to journald that systemd named: "device:inode". What runs below a service has
// the variable too, and often another file.
func toJournal(f *os.File, stream string) bool {
	info, err := f.Stat()
	if err != nil || stream == "" {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && fmt.Sprintf("%d:%d", st.Dev, st.Ino) == stream
}
