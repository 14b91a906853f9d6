//go:build unix && !linux

package atomicfile

import (
	"syscall"
	"time"
)

func changed(*syscall.Stat_t) time.Time { return time.Time{} }
