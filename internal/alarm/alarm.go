// Package alarm wakes a goroutine from time to time at the lowest cost.
//
// A Go timer that fires in an idle process wakes three threads. One is the runtime's monitor, which then
// polls for a while (sysmon of Go 1.26): six wake-ups or more. A kernel timer is a descriptor that the
// runtime waits for as for a socket: one thread wakes, and the monitor sleeps until a goroutine makes a
// system call (TestOneWakeUp).
//
// Where the system has no such timer, an Alarm is a Go timer.
package alarm

import (
	"context"
	"os"
	"syscall"
	"time"
)

// Alarm wakes the one goroutine that calls Wait. Any goroutine may call Close, once.
type Alarm struct {
	file  *os.File // nil: timer is used
	conn  syscall.RawConn
	timer *time.Timer
	ended chan struct{}
}

// New returns an Alarm.
func New() *Alarm { return of(open()) }

// of returns an Alarm that waits for file, or for a Go timer if there is no file or the runtime cannot
// wait for it: epoll refuses more than fs.epoll.max_user_watches (epoll(7)).
func of(file *os.File) *Alarm {
	a := &Alarm{ended: make(chan struct{})}
	if file != nil {
		conn, err := file.SyscallConn()
		if err == nil && file.SetDeadline(time.Time{}) == nil {
			a.file, a.conn = file, conn
			return a
		}
		_ = file.Close() // it was not used
	}
	a.timer = time.NewTimer(time.Hour)
	return a
}

// Wait waits for d and returns true, or false once the Alarm is closed.
func (a *Alarm) Wait(d time.Duration) bool {
	if a.file != nil {
		return wait(a.conn, max(d, 1))
	}
	a.timer.Reset(d)
	select {
	case <-a.ended:
		return false
	case <-a.timer.C:
		return true
	}
}

// Close ends Wait.
func (a *Alarm) Close() {
	close(a.ended)
	if a.file != nil {
		_ = a.file.Close() // it holds nothing
		return
	}
	a.timer.Stop()
}

// Every calls f at each multiple of d on the clock until ctx ends, so that all who do so wake together.
func Every(ctx context.Context, d time.Duration, f func()) {
	a := New()
	defer context.AfterFunc(ctx, a.Close)()
	for now := time.Now(); a.Wait(now.Truncate(d).Add(d).Sub(now)); now = time.Now() {
		f()
	}
}
