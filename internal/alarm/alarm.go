// Package alarm wakes a goroutine now and then at the least cost.
//
// A Go timer that ends in an idle process wakes three threads, among them the runtime's monitor, which
// then looks about for a while (sysmon of Go 1.26): six wake-ups and more. A timer of
// the kernel is a descriptor that the runtime waits for as it does for a socket: one thread wakes, and
// the monitor sleeps on until somebody makes a system call (TestOneWakeUp).
//
// Where the system has no such timer, an Alarm is a Go timer.
package alarm

import (
	"context"
	"os"
	"syscall"
	"time"
)

// Alarm wakes one goroutine, which calls Wait. Any goroutine may call Close, once.
type Alarm struct {
	file  *os.File // nil: timer is used
	conn  syscall.RawConn
	timer *time.Timer
	ended chan struct{}
}

// New returns an Alarm.
func New() *Alarm {
	a := &Alarm{ended: make(chan struct{})}
	if file := open(); file != nil {
		if conn, err := file.SyscallConn(); err == nil {
			a.file, a.conn = file, conn
			return a
		}
		_ = file.Close() // it was not used
	}
	a.timer = time.NewTimer(time.Hour)
	return a
}

// Wait waits for d and reports whether it did: false means that the Alarm is closed.
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

// Every calls f at each multiple of d on the clock until ctx ends, so that all who do so wake at once.
func Every(ctx context.Context, d time.Duration, f func()) {
	a := New()
	defer context.AfterFunc(ctx, a.Close)()
	for now := time.Now(); a.Wait(now.Truncate(d).Add(d).Sub(now)); now = time.Now() {
		f()
	}
}
