//go:build linux || darwin

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// leftoverGrace is what processes that outlive the command's main process
	// get from TERM to KILL.
	leftoverGrace = 500 * time.Millisecond
	// drainLimit is how long output is still read when the tree is gone but
	// something outside of it holds the pipe.
	drainLimit = time.Second
	// killAgain is the pause before what a KILL did not reach gets another.
	killAgain = 5 * time.Millisecond
	// recordLimit is how long a record that cannot be written (full disk) is
	// tried again.
	recordLimit = time.Minute
)

// ShimMain is what the shim process runs, for life: it returns the exit code.
// It takes over the process (descriptors, signals, session, folder) and is
// only of use to a Runner, which gives it the spec on standard input. args is
// what follows the shim command: nothing, or NoCgroup.
func ShimMain(args []string) int {
	noCgroup := len(args) == 1 && args[0] == NoCgroup
	if len(args) > 0 && !noCgroup {
		fmt.Fprintf(os.Stderr, "shim: arguments %.100q: it takes %s only: it is started by the daemon, not by hand\n", args, NoCgroup)
		return shimRefused
	}
	closeInherited()
	// What is notified has its default meaning again in the command; what is
	// ignored would be ignored there too.
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)

	spec, err := readSpec(os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "shim: %v\n", err)
		return shimRefused
	}
	s := &shim{spec: spec, term: term, noCgroup: noCgroup, orphans: becomeSubreaper()}
	if err := os.Chdir("/"); err != nil {
		fmt.Fprintf(os.Stderr, "shim: %v\n", err)
		return shimRefused
	}
	claimed, err := s.claim()
	if err != nil {
		fmt.Fprintf(os.Stderr, "shim: %v\n", err)
		return shimRefused
	}
	if !claimed {
		fmt.Println(saysTaken)
		return shimDone
	}
	fmt.Println(saysClaimed) // its reader may be gone: the launch is made all the same
	if err := detach(); err != nil {
		return s.finish(Exit{Code: -1, NotStarted: fmt.Sprintf("/dev/null: %v: mend the system", err)})
	}
	return s.run()
}

func readSpec(r io.Reader) (Spec, error) {
	var spec Spec
	data, err := io.ReadAll(io.LimitReader(r, maxSpecBytes+1))
	if err != nil {
		return spec, fmt.Errorf("spec: %w", err)
	}
	if len(data) == 0 || len(data) > maxSpecBytes {
		return spec, fmt.Errorf("spec of %d bytes: it is started by the daemon, not by hand", len(data))
	}
	// A daemon that died while it wrote leaves half a spec, which does not
	// parse: nothing is started.
	if err := json.Unmarshal(data, &spec); err != nil {
		return spec, fmt.Errorf("spec: %w", err)
	}
	if spec, err = spec.checked(); err != nil {
		return spec, err
	}
	if os.Getenv(markVar) != markOf(spec.Key, tokenDigest(spec.Token)) {
		return spec, fmt.Errorf("no mark of launch %.80q: it is started by the daemon, not by hand", spec.Key)
	}
	return spec, nil
}

// detach lets go of the starter's pipes.
func detach() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := dup(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}

// shim is one launch, in the shim's process.
type shim struct {
	spec     Spec
	id       identity
	term     <-chan os.Signal
	noCgroup bool
	orphans  bool // of the tree become children of this process
}

// claim takes the pid file, before anything is started.
func (s *shim) claim() (bool, error) {
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	self, err := lookProc(os.Getpid())
	if err != nil {
		return false, fmt.Errorf("own process: %w: mount /proc", err)
	}
	s.id = identity{
		Version: recordVersion, Key: s.spec.Key, Pid: self.pid, Start: self.start, Boot: boot,
		Token: tokenDigest(s.spec.Token), Dir: s.spec.Dir,
		KillAfter: s.spec.KillAfter, MaxOutput: s.spec.MaxOutput, Launched: time.Now().UTC(),
	}
	if !s.noCgroup {
		s.id.Cgroup = makeCgroup(s.spec.Key)
	}
	claimed, err := claim(s.spec.PidFile, s.id)
	if !claimed {
		removeCgroup(s.id.Cgroup)
	}
	return claimed, err
}

// finish writes the record. It stays for a while to do so: without one the
// launch counts as lost and its work may be done again.
func (s *shim) finish(e Exit) int {
	removeCgroup(s.id.Cgroup)
	if e.Started.IsZero() {
		e.Started = s.id.Launched
	}
	if e.Ended.IsZero() {
		e.Ended = time.Now().UTC()
	}
	until := time.Now().Add(recordLimit)
	for {
		err := writeExit(s.spec.Dir, s.id.record(e))
		if err == nil {
			return shimDone
		}
		if time.Now().After(until) {
			return shimSilent
		}
		// The command may have removed the folder (git clean).
		_ = os.MkdirAll(s.spec.Dir, 0o700)
		time.Sleep(pollMax)
	}
}

// run starts the command, waits for it and for all that it started, and
// records its end.
func (s *shim) run() int {
	out, err := openStreams(s.spec)
	if err != nil {
		return s.finish(Exit{Code: -1, NotStarted: err.Error()})
	}
	pid, err := s.start(out)
	out.closeWriters()
	if err != nil {
		out.finish()
		return s.finish(Exit{Code: -1, NotStarted: err.Error()})
	}
	started := time.Now().UTC()
	ends := make(chan end, 2) // as many as reap sends: it never waits
	var reaper sync.WaitGroup
	reaper.Go(func() { reap(pid, ends) })
	e := s.supervise(ends)
	reaper.Wait()
	s.endStrays()
	out.finish()
	e.Started = started
	return s.finish(e)
}

// end is what the reaper tells: the main process ended, or nothing is left.
type end struct {
	main   bool
	status syscall.WaitStatus
	empty  bool
}

// reap collects all children until there are none. Where orphans of the tree
// become children of this process, no children means no tree.
func reap(main int, ends chan<- end) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, waitAll, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			ends <- end{empty: true}
			return
		case pid == main:
			if collectDead() {
				ends <- end{main: true, status: status, empty: true}
				return
			}
			ends <- end{main: true, status: status}
		}
	}
}

// collectDead collects the children that are dead already and reports whether
// none is left: the usual case, told at once.
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

// supervise sees the tree to its end: by itself, after its main process, or
// on a TERM to this process.
func (s *shim) supervise(ends <-chan end) Exit {
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
	term, again := s.term, killAgain
	for {
		select {
		case <-term:
			term = nil
			e.Stopped = !mainGone
			signalBelow(os.Getpid(), syscall.SIGTERM, syscall.SIGCONT)
			killWithin(s.spec.KillAfter)
		case end := <-ends:
			if end.main {
				mainGone = true
				e.Ended = time.Now().UTC()
				e.Code, e.Signal = outcome(end.status)
			}
			if end.empty {
				return e
			}
			signalBelow(os.Getpid(), syscall.SIGTERM, syscall.SIGCONT)
			killWithin(min(leftoverGrace, s.spec.KillAfter))
		case <-kill.C:
			killCgroup(s.id.Cgroup, s.spec.Key)
			signalBelow(os.Getpid(), syscall.SIGKILL)
			kill.Reset(again)
			again = min(2*again, pollMax) // what is left after a few is in the kernel's hands
		}
	}
}

func outcome(status syscall.WaitStatus) (code int, sig string) {
	if status.Signaled() {
		return -1, signalName(status.Signal())
	}
	return status.ExitStatus(), ""
}

// endStrays ends what belongs to the launch without being below this process:
// orphans where they do not come back to it, and what another process put
// into the cgroup.
func (s *shim) endStrays() {
	if !s.orphans {
		_, _ = sweep(context.Background(), s.spec.Key, "", s.id.Token)
	}
	for until := time.Now().Add(drainLimit); populated(s.id.Cgroup) && time.Now().Before(until); {
		killCgroup(s.id.Cgroup, s.spec.Key)
		time.Sleep(killAgain)
	}
}
