package alarm

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// open returns a timer of the kernel; nil if it has none for us.
func open() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "alarm")
}

// wait sets the timer and waits for it. Its calls never block and are made raw: with others, the
// runtime's monitor would wake.
func wait(conn syscall.RawConn, d time.Duration) bool {
	set, over := false, false
	err := conn.Read(func(fd uintptr) bool {
		timer, is := int(fd), unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if !set {
			set = true
			return unix.TimerfdSettime(timer, 0, &is, nil) != nil // as of a duration that it cannot count
		}
		over = unix.TimerfdGettime(timer, &is) == nil && is.Value == unix.Timespec{}
		return over
	})
	return err == nil && over
}
