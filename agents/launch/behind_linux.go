package launch

import (
	"runtime"
	"syscall"
)

// lowest is the priority of what nobody waits for.
const lowest = 19

// yieldToAll has the rest of a goroutine run where a core is free: its thread goes with it.
func yieldToAll() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest) // on Linux of the thread alone; without it all is as before
}
