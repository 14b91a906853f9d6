//go:build linux || darwin

package agents

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// executable reports whether this process may run the file.
func executable(file string, _ fs.FileInfo) bool { return unix.Access(file, unix.X_OK) == nil }
