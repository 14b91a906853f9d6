//go:build !linux

package journal

import "os"

// syncData calls fsync. On macOS, Go uses F_FULLFSYNC, which does reach the disk.
func syncData(f *os.File) error { return f.Sync() }
