//go:build linux || darwin

package checkouts

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMarks bounds the names of a folder's extended attributes; where there are more, there are some that count.
const maxMarks = 64 << 10

// hasMarks says that a folder has extended attributes, access lists among them, that a user could have put there.
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
