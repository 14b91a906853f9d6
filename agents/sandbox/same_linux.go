package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
)

const oPath = 0x200000 // O_PATH: the folder itself, not its content

// Identify returns the identity of the folder path below base. No part of it below base may be a
// link.
func Identify(base, path string) (Identity, error) {
	out := Identity{Path: path}
	rel, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(rel) {
		return out, fmt.Errorf("%s is not below %s", path, base)
	}
	fd, err := syscall.Open(base, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("%s: %w", base, err)
	}
	for part := range strings.SplitSeq(rel, "/") {
		next, err := syscall.Openat(fd, part, oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		_ = syscall.Close(fd)
		if err != nil {
			return out, fmt.Errorf("%s: a link, or no folder: %w", path, err)
		}
		fd = next
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return out, fmt.Errorf("%s: %w", path, err)
	}
	out.Dev, out.Ino = uint64(st.Dev), st.Ino
	return out, nil
}

func execute(argv, env []string) error { return syscall.Exec(argv[0], argv, env) }
