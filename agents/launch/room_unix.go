//go:build unix

package launch

import (
	"io/fs"
	"syscall"
)

// blockSize is the unit in which the system counts what a file has on the disk.
const blockSize = 512

// onDisk is what one name of a file has on the disk.
func onDisk(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	if info.IsDir() || st.Nlink == 0 {
		return st.Blocks * blockSize
	}
	return st.Blocks * blockSize / int64(st.Nlink)
}

// freeOf is how much is free of the disk that a folder lies on.
func freeOf(dir string) (bytes int64, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
