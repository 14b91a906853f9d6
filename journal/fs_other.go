//go:build !linux

package journal

import "os"

// syncData is the whole fsync; on macOS Go makes it F_FULLFSYNC, which is the
// one that reaches the disk.
func syncData(f *os.File) error { return f.Sync() }
