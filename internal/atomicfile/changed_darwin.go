package atomicfile

import (
	"syscall"
	"time"
)

func changed(sys *syscall.Stat_t) time.Time { return time.Unix(sys.Ctimespec.Unix()) }

func modified(sys *syscall.Stat_t) time.Time { return time.Unix(sys.Mtimespec.Unix()) }
