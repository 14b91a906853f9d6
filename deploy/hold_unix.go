//go:build !windows

package deploy

import "syscall"

// holdSignal stops a process where it is.
const holdSignal = syscall.SIGSTOP
