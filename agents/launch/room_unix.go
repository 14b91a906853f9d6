//go:build unix

package launch

import (
	"io/fs"
	"syscall"
)

// blockSize is the unit, in bytes, of a file's blocks.
const blockSize = 512

// onDisk returns the disk usage of one name of a file.
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

// freeOf returns the free space of a folder's disk.
func freeOf(dir string) (bytes int64, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
