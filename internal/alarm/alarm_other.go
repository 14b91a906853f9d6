//go:build !linux

package alarm

import (
	"os"
	"syscall"
	"time"
)

func open() *os.File { return nil }

func wait(syscall.RawConn, time.Duration) bool { return false }
