//go:build linux || darwin

package agents

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// end is a report of reap: the main process ended, or nothing is left.
type end struct {
	main   bool
	status syscall.WaitStatus
	empty  bool
}

// reap collects all children until there are none. If the tree's orphans become children of this
// process, no children means no tree.
func reap(main int, ends chan<- end) {
	for mainGone := false; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, waitAll, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			ends <- end{empty: true}
			return
		case pid == main && !mainGone: // the pid may be reused by the rest of the tree
			mainGone = true
			if collectDead() {
				ends <- end{main: true, status: status, empty: true}
				return
			}
			ends <- end{main: true, status: status}
		}
	}
}

// collectDead collects the children that are already dead and reports whether none is left: the
// usual case.
func collectDead() (none bool) {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG|waitAll, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return true
		}
		if pid == 0 {
			return false
		}
	}
}

// supervise waits for the tree to end: by itself, after its main process, or after a TERM to this
// process.
func (s *shim) supervise(main int, ends <-chan end) Exit {
	var e Exit
	var mainGone bool
	var killAt time.Time
	kill := time.NewTimer(time.Hour)
	kill.Stop()
	defer kill.Stop()
	killWithin := func(d time.Duration) {
		if at := time.Now().Add(d); killAt.IsZero() || at.Before(killAt) {
			killAt = at
			kill.Reset(d)
		}
	}
	again, stopping, killer := killAgain, false, killer{}
	stop := func() {
		if stopping {
			return
		}
		stopping, e.Stopped = true, !mainGone && !childGone(main)
		signalBelow(os.Getpid(), s.spec.wrapper(), syscall.SIGTERM, syscall.SIGCONT)
		killWithin(s.spec.KillAfter)
	}
	if s.calledOff() { // the signal may have come before this launch listened
		stop()
	}
	for {
		select {
		case <-s.term:
			s.termed = true
			stop()
		case <-s.look:
			if s.calledOff() {
				stop()
			}
		case end := <-ends:
			if end.main {
				mainGone = true
				e.Ended = time.Now().UTC()
				e.Code, e.Signal = outcome(end.status)
			}
			if end.empty {
				return e
			}
			if s.spec.Cage != nil { // the sandbox's end kills the rest: no TERM can reach it
				killWithin(min(heldGrace, s.spec.KillAfter))
				continue
			}
			signalBelow(os.Getpid(), "", syscall.SIGTERM, syscall.SIGCONT)
			killWithin(min(leftoverGrace, s.spec.KillAfter))
		case <-kill.C:
			killCgroup(s.id.Cgroup, s.id.Mark)
			if killer.kill() {
				again = killAgain
			}
			kill.Reset(again)
			again = min(2*again, pollMax) // after a few, the rest is up to the kernel
		}
	}
}

// childGone reports whether a child has ended, although its end may not be reported yet.
func childGone(pid int) bool {
	p, err := lookProc(pid)
	return errors.Is(err, os.ErrNotExist) || err == nil && (p.dead || p.ppid != os.Getpid())
}

// endStrays ends processes of the launch that are not below this process: orphans that did not
// become its children, and what another process put into the cgroup.
func (s *shim) endStrays() {
	if !s.orphans {
		_, _ = sweep(context.Background(), s.id.Mark, "", s.id.Token)
	}
	for until := time.Now().Add(drainLimit); populated(s.id.Cgroup) && time.Now().Before(until); {
		killCgroup(s.id.Cgroup, s.id.Mark)
		time.Sleep(killAgain)
	}
}
