//go:build linux || darwin

package agents

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leftoverGrace is the time from TERM to KILL for processes that outlive the command's main
	// process.
	leftoverGrace = 500 * time.Millisecond
	// drainLimit is how long to keep reading output if the tree is gone but something outside holds
	// the pipe.
	drainLimit = time.Second
	// heldGrace is how long a sandbox may take to end: the kernel ends what is in it.
	heldGrace = 250 * time.Millisecond
	// killAgain is the pause before another KILL for what the first did not reach.
	killAgain = 5 * time.Millisecond
	// recordLimit is how long to retry writing a record (full disk): the people who can fix that
	// may be away for the weekend.
	recordLimit = 100 * time.Hour
	// recordLast is that limit during a shutdown.
	recordLast = 10 * time.Second
)

// stopSignal makes a shim check whether its launch must end: see askStop.
const stopSignal = syscall.SIGUSR1

// ShimMain is the shim process's main function; it returns the exit code. It takes over the process
// (descriptors, signals, session, folder) and only serves a Runner, which sends specs one after the
// other on standard input and reads answers from standard output. It ends when that Runner is gone
// and its launch is over. args is empty or NoCgroup.
func ShimMain(args []string) int {
	noCgroup := len(args) == 1 && args[0] == NoCgroup
	if len(args) > 0 && !noCgroup {
		fmt.Fprintf(os.Stderr, "shim: arguments %.100q: it takes %s only: it is started by the daemon, not by hand\n",
			args, NoCgroup)
		return shimRefused
	}
	mark := os.Getenv(markVar)
	if mark == "" {
		fmt.Fprintln(os.Stderr, "shim: it is started by the daemon, not by hand")
		return shimRefused
	}
	closeInherited()
	// Signals with Notify get their default action in the command; ignored ones would stay ignored
	// there.
	term, look := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	signal.Notify(look, stopSignal)
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR2)
	here, err := newPlace(mark, noCgroup)
	if err == nil {
		err = os.Chdir("/")
	}
	var in, out *os.File
	if err == nil {
		in, out, err = detach()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "shim: %v\n", err)
		return shimRefused
	}
	given := make(chan given)
	go readSpecs(in, given) // until the process ends
	next := here.prepare()
	defer func() {
		next.close()
		removeStrays(here.groups)
	}()
	for {
		select {
		case <-term:
			return shimDone
		case <-look: // for a launch that is over
		case g, ok := <-given:
			if !ok {
				return shimDone
			}
			s := &shim{spec: g.spec, place: here, next: next, say: out, term: term, look: look}
			if code, again := s.serve(g.err); !again {
				return code
			}
			next.close()
			next = here.prepare()
		}
	}
}

// given is a received spec.
type given struct {
	spec Spec
	err  error // why it is invalid
}

// readSpecs forwards specs until the input ends.
func readSpecs(in io.Reader, out chan<- given) {
	defer close(out)
	for {
		spec, whole, err := readSpec(in)
		if !whole {
			return
		}
		out <- given{spec, err}
	}
}

// readSpec reads one spec. whole is false at the end of input, or after a partial spec from a
// daemon that died while writing: nothing is started.
func readSpec(in io.Reader) (spec Spec, whole bool, err error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return spec, false, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > maxSpecBytes {
		return spec, false, fmt.Errorf("spec of %d bytes: it is started by the daemon, not by hand", n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(in, data); err != nil {
		return spec, false, err
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return spec, true, fmt.Errorf("spec: %w", err)
	}
	spec, err = spec.checked()
	return spec, true, err
}

// detach moves the Runner's pipes to higher descriptors that commands do not inherit, and opens
// /dev/null in their place.
func detach() (in, out *os.File, err error) {
	var moved [2]*os.File
	for fd := range moved {
		to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, nil, err
		}
		moved[fd] = os.NewFile(uintptr(to), "runner")
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	for fd := range 3 {
		if err := dup(int(null.Fd()), fd); err != nil {
			return nil, nil, err
		}
	}
	return moved[0], moved[1], nil
}

// shim is one launch in the shim's process.
type shim struct {
	*place
	spec   Spec
	id     identity
	next   *ready
	way    *exit // out of its sandbox
	say    io.Writer
	term   <-chan os.Signal
	look   <-chan os.Signal
	termed bool // the system, at shutdown, asked this process to end
}

// serve carries out one launch, and reports whether the process takes another. Nobody may be
// reading its answers; the launch is carried out nevertheless.
func (s *shim) serve(bad error) (code int, again bool) {
	if bad != nil {
		return shimRefused, s.tell(saysRefused, bad.Error())
	}
	claimed, err := s.claim()
	switch {
	case err != nil:
		return shimRefused, s.tell(saysRefused, err.Error())
	case !claimed:
		return shimDone, s.tell(saysTaken, "")
	}
	e := s.run()
	defer func() { s.show(e) }()
	code = s.finish(&e)
	if code != shimDone || s.termed {
		return code, false
	}
	how, err := json.Marshal(e)
	if err != nil {
		return shimSilent, false
	}
	return shimDone, s.tell(saysEnded, string(how))
}

// show also writes the end beside the launch's files, for readers there; without any, a success is
// not worth one. The pid file is what counts, so nobody waits for this.
func (s *shim) show(e Exit) {
	if e.success() && isEmpty(s.spec.Dir) {
		return
	}
	if makeDir(s.spec.Below, s.spec.Dir) == nil { // the command may have removed it (git clean)
		_ = writeExit(s.spec.Dir, s.id.record(e))
	}
}

// isEmpty reports whether a folder has no files or is missing. The command may have put anything in its
// place.
func isEmpty(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|openSafely, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err == io.EOF
}

// tell writes a line, and reports whether anybody reads it.
func (s *shim) tell(word, rest string) bool {
	line := word + " " + strings.ReplaceAll(rest, "\n", " ")
	_, err := io.WriteString(s.say, line[:min(len(line), maxRecordBytes-2)]+"\n")
	return err == nil
}

func (s *shim) tellClaimed() { _ = s.tell(saysClaimed, string(s.file.last)) }

// claim takes the pid file before anything is started.
func (s *shim) claim() (bool, error) {
	s.id = s.self
	s.id.file, s.id.Key, s.id.Token, s.id.Dir = s.spec.PidFile, s.spec.Key, tokenDigest(s.spec.Token), s.spec.Dir
	s.id.KillAfter, s.id.MaxOutput = s.spec.KillAfter, s.spec.MaxOutput
	s.id.Cgroup, s.id.Launched = s.next.cgroup, time.Now().UTC()
	err := s.place.claim(s.spec.PidFile, s.id)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// finish writes the record and retries for a while: without one the launch counts as lost, and its
// work may be repeated.
func (s *shim) finish(e *Exit) int {
	if e.Started.IsZero() {
		e.Started = s.id.Launched
	}
	if e.Ended.IsZero() {
		e.Ended = time.Now().UTC()
	}
	limit := time.NewTimer(recordLimit)
	defer limit.Stop()
	for {
		err := s.file.ended(*e)
		if err == nil {
			return shimDone
		}
		select {
		case <-limit.C:
			return shimSilent
		case <-s.term:
			s.termed = true
			limit.Reset(recordLast)
		case <-time.After(pollMax):
		}
	}
}

// run starts the command and waits for its whole tree. It reports the claim only after the start,
// because whoever reads it wakes up and would compete for the CPU.
func (s *shim) run() Exit {
	if s.calledOff() {
		s.tellClaimed()
		return Exit{Code: -1, Stopped: true}
	}
	pid, err := 0, s.next.err
	if err == nil {
		s.way, err = openExit(s.spec)
	}
	defer s.way.close()
	if err == nil && s.spec.Sealed {
		err = s.next.out.seal()
	}
	if err == nil {
		pid, err = s.start()
	}
	if err == nil {
		if err = s.way.open(s.spec.Net); err != nil { // the sandboxed command has not begun: kill it
			_ = syscall.Kill(pid, syscall.SIGKILL)
			reap(pid, make(chan end, 2))
		}
	}
	started := time.Now().UTC()
	ends := make(chan end, 2) // as many as reap sends, so it never blocks
	var reaper sync.WaitGroup
	if err == nil {
		reaper.Go(func() { reap(pid, ends) })
	}
	s.tellClaimed()
	if err != nil {
		var no *CommandError
		return Exit{Code: -1, NotStarted: brief(err.Error()), NoCommand: errors.As(err, &no)}
	}
	s.next.out.keep(s.spec)
	e := s.supervise(pid, ends)
	reaper.Wait()
	s.endStrays()
	e.Unkept = s.next.out.finish()
	e.Started = started
	return e
}

// maxFaultBytes is the record's room for a message, with each byte escaped.
const maxFaultBytes = 4 << 10

// brief omits the middle of a text too long for a record: a name or a PATH can be that long.
func brief(text string) string {
	if len(text) <= maxFaultBytes {
		return text
	}
	const half = maxFaultBytes / 2
	return strings.ToValidUTF8(text[:half], "") + " [...] " + strings.ToValidUTF8(text[len(text)-half:], "")
}

// calledOff reports whether this launch, or the one it is under, must end.
func (s *shim) calledOff() bool {
	return stopAsked(s.spec.PidFile) || s.spec.Under != "" && stopAsked(s.spec.Under)
}

func outcome(status syscall.WaitStatus) (code int, sig string) {
	if status.Signaled() {
		return -1, signalName(status.Signal())
	}
	return status.ExitStatus(), ""
}
