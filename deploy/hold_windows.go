package deploy

import "syscall"

// holdSignal: Windows has no such signal, and no service of ours.
const holdSignal = syscall.SIGTERM
