//go:build linux || darwin

package checkouts

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMarks is the limit, in bytes, of the names of a folder's extended attributes; more always
// count.
const maxMarks = 64 << 10

// hasMarks reports whether a folder has extended attributes, including access lists, that a user
// could have set.
func hasMarks(dir *os.File) (bool, error) {
	n, err := unix.Flistxattr(int(dir.Fd()), nil)
	if n == 0 || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	if err != nil || n > maxMarks {
		return true, os.NewSyscallError("flistxattr", err)
	}
	buf := make([]byte, n)
	if n, err = unix.Flistxattr(int(dir.Fd()), buf); err != nil {
		return true, os.NewSyscallError("flistxattr", err)
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if name != "" && !strings.HasPrefix(name, "security.") && !strings.HasPrefix(name, "com.apple.") {
			return true, nil
		}
	}
	return false, nil
}
