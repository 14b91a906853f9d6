package alarm

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// open returns a kernel timer, or nil if the kernel refuses one.
func open() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "alarm")
}

// wait sets the timer and waits for it. Its system calls never block and are raw: others would wake the
// runtime's monitor.
func wait(conn syscall.RawConn, d time.Duration) bool {
	set, over := false, false
	err := conn.Read(func(fd uintptr) bool {
		timer, is := int(fd), unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if !set {
			set = true
			return unix.TimerfdSettime(timer, 0, &is, nil) != nil // not with a d of 1 or more
		}
		over = unix.TimerfdGettime(timer, &is) == nil && is.Value == unix.Timespec{}
		return over
	})
	return err == nil && over
}
