//go:build unix

package inbox

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the name of a file's owner; its number if it has no name, "" if unknown.
func owner(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
