//go:build !windows

package unit

import "syscall"

// holdSignal stops a process where it is.
const holdSignal = syscall.SIGSTOP
