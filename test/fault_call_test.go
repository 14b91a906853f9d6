//go:build linux

package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// The Nth system call of a kind fails, in each thread of the daemon, once. All the others work: a daemon that goes on has
// nothing in its way, and one that ends says why, and the next one has nothing in its way either.
const (
	callsVar     = "SLUICE_CALLS" // "all": every N of every call with every error
	callShort    = 21             // cases of the short form
	callMost     = 400            // no run has so many calls of a kind in one thread
	callMisses   = 3              // so many runs in a row without so many calls are the end of them
	callDeepMost = 8
	callAnswer   = time.Minute // a daemon that lives answers within: it opens a repo that cannot be opened again and again, each time later
	callRunMost  = 4 * time.Minute
	callDeep     = 3 * time.Second // so long are the calls of all processes in the way
)

// callSpec is a run that is short and has all there is: a sentinel, a reviewer, a person, a command.
const callSpec = `workflow: {id: %[1]s}
steps:
  - {id: B, agent: {type: a}, signal: {type: sentinel_file}, gate: GB}
gates:
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// callErrors are what a disk says.
func callErrors() []string { return []string{"ENOSPC", "EIO", "EROFS"} }

// callKind are calls, as strace names them, and how many of them a thread makes in a run, about.
type callKind struct {
	calls string
	most  int
}

func callKinds() []callKind {
	return []callKind{{"write", 12}, {"pwrite64", 8}, {"fsync", 9}, {"fdatasync", 3}, {"openat", 60}, {"renameat,renameat2,linkat", 3}, {"ftruncate", 1}}
}

// callCase is one failure: of the daemon, or, deep, of each process that it starts too. As the latter meet it again with
// every launch, nothing need come of them meanwhile.
type callCase struct {
	calls, err string
	n          int
	deep       bool
}

func (c callCase) String() string {
	if c.deep {
		return fmt.Sprintf("%s %d %s in all processes", c.calls, c.n, c.err)
	}
	return fmt.Sprintf("%s %d %s", c.calls, c.n, c.err)
}

// front is what has the calls fail.
func (c callCase) front(trace string) []string {
	argv := []string{"env", "GOMAXPROCS=1", "strace", "-f", "-qq", "-o", trace, "-e", "trace=" + c.calls,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", c.calls, c.err, c.n)}
	if !c.deep {
		argv = append(argv, "-b", "execve") // what it starts is let go
	}
	return argv
}

// callRun runs a daemon into the failure. It reports whether there was one: the run may have fewer
// calls.
func (x *arena) callRun(c callCase) (failed bool) {
	t := x.t
	t.Helper()
	r, trace := x.repos[0], filepath.Join(x.work, "trace")
	mark, _ := os.Stat(x.log.Name())
	if c.calls == "ftruncate" { // a line that a crash tore, or nothing is ever cut
		x.tear(r)
	}
	x.boot(c.front(trace)...)
	ended := make(chan error, 1)
	daemon := x.last
	go func() { ended <- daemon.Wait() }()
	begun, answered, began := len(r.runs), time.Now(), time.Now()
	var done bool
	for until := time.Now().Add(callRunMost); !done && len(ended) == 0; time.Sleep(pollEvery / 3) {
		if _, ok := x.status(r); ok {
			answered = time.Now()
		}
		if silent := time.Since(answered); silent > callAnswer {
			t.Errorf("%s: the daemon has not answered for %v", c, silent)
			break
		}
		done = x.person(r, len(r.runs) == begun) && len(r.runs) > begun || c.deep && time.Since(began) > callDeep
		if time.Now().After(until) {
			t.Errorf("%s: the run has not ended after %v", c, callRunMost)
			break
		}
	}
	ownEnd := len(ended) > 0
	for _, pid := range x.hosts() { // not strace: it would let the daemon go
		if parentOf(pid) == daemon.Process.Pid {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if c.deep {
		x.killAll()
	}
	err := <-ended
	x.last = nil
	log, _ := os.ReadFile(x.log.Name())
	said := string(log[mark.Size():])
	if ownEnd && !strings.Contains(said, "sluice: ") && !strings.Contains(said, "fatal error: runtime: ") {
		t.Errorf("%s: the daemon ended (%v) and did not say why:\n%s", c, err, said)
	}
	calls, terr := os.ReadFile(trace)
	if terr != nil && !errors.Is(terr, os.ErrNotExist) {
		t.Error(terr)
	}
	return strings.Contains(string(calls), "(INJECTED)")
}

// tear leaves half a line at the journal's end.
func (x *arena) tear(r *arenaRepo) {
	x.t.Helper()
	f, err := os.OpenFile(r.journal(), os.O_APPEND|os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return // it is the first run
	}
	if err == nil {
		_, err = f.WriteString(`{"seq":9,"at":"`)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// callAfter starts a daemon that nothing is in the way of, and lets it come to the end of all.
func (x *arena) callAfter(c callCase) {
	t := x.t
	t.Helper()
	x.boot()
	x.awaitService()
	if st, _ := x.status(x.repos[0]); len(st.Runs) == 0 {
		eventually(t, "a run is started", x.ask)
	}
	x.finish()
	x.alone()
	if err := x.stop(); err != nil {
		t.Errorf("%s: the next daemon ends with %v", c, err)
	}
	for _, r := range x.repos {
		if err := r.look(); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
}

func TestCallFails(t *testing.T) {
	conform.Rule(t, "3-engine crash", "whatever system call of the daemon fails: nothing acknowledged is lost, and it goes on or ends with a word")
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs: strace (apt-get install strace)")
	}
	seed := seedOf(t)
	x := newArena(t, seed, 1, arenaPlaces{})
	x.spec(callSpec)
	if os.Getenv(callsVar) == "" {
		x.someCalls()
	} else {
		x.allCalls()
	}
	if t.Failed() {
		return
	}
	x.check()
}

// someCalls tries a few failures, each time others.
func (x *arena) someCalls() {
	kinds, errs := callKinds(), callErrors()
	for i := range callShort {
		kind := kinds[i%len(kinds)]
		c := callCase{kind.calls, errs[x.rnd.IntN(len(errs))], 1 + x.rnd.IntN(kind.most), x.rnd.IntN(10) == 0}
		began := time.Now()
		hit := x.callRun(c)
		x.callAfter(c)
		x.t.Logf("%s: %v, %v", c, hit, time.Since(began).Round(time.Millisecond))
		if x.t.Failed() {
			return
		}
	}
}

// allCalls tries every failure there is.
func (x *arena) allCalls() {
	for _, kind := range callKinds() {
		calls := kind.calls
		x.deepCalls(calls)
		for _, err := range callErrors() {
			n, hits, misses := 1, 0, 0
			for ; n <= callMost && misses < callMisses && !x.t.Failed(); n++ {
				c := callCase{calls, err, n, false}
				if misses++; x.callRun(c) {
					hits, misses = hits+1, 0
				}
				x.callAfter(c)
			}
			x.t.Logf("%s %s: %d times a call failed, up to the %dth", calls, err, hits, n-1-misses)
			if n > callMost {
				x.t.Errorf("%s: there is no end to them", calls)
			}
		}
	}
}

// deepCalls tries a few failures in all processes: those under which agents live have few calls.
func (x *arena) deepCalls(calls string) {
	hits := 0
	for n := 1; n <= callDeepMost && !x.t.Failed(); n++ {
		c := callCase{calls, callErrors()[n%len(callErrors())], n, true}
		if x.callRun(c) {
			hits++
		}
		x.callAfter(c)
	}
	x.t.Logf("%s: %d times a call of every process failed, up to the %dth", calls, hits, callDeepMost)
}
