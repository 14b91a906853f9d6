package launch

import (
	"runtime"
	"syscall"
)

// lowest is the priority of background work.
const lowest = 19

// yieldToAll lowers the priority of the rest of the goroutine, whose thread ends with it.
func yieldToAll() {
	runtime.LockOSThread()
	// On Linux this affects the thread alone; a failure does no harm.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest)
}
