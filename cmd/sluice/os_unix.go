//go:build unix

package main

import (
	"os"
	"syscall"
)

// reloadSignals are those at which the daemon reads its settings again.
func reloadSignals() []os.Signal { return []os.Signal{syscall.SIGHUP} }
