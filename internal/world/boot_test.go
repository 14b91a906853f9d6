//go:build linux || darwin

package world

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/agents"
	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/twoclocks"
)

// TestALaunchOfBeforeTheMachinesStartIsLost: a power cut may have taken its record, so that it looks as if it had never been.
func TestALaunchOfBeforeTheMachinesStartIsLost(t *testing.T) {
	conform.Rule(t, "3-engine keys", "a launch is never made twice, a power cut between")
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	j := b.stepJob("A", 1, 1)
	j.Attempt.Launched = b.e.Booted().Add(-time.Second)
	ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded)
	if !ok || !ev.Exit.Lost || ev.Exit.NotStarted != "" {
		t.Fatalf("%+v", ev)
	}
	if b.has(".workflow/runs/w-1/A.1/stdout") {
		t.Error("it was started")
	}
	j = b.stepJob("A", 2, 1)
	j.Attempt.Launched = b.e.Booted().Add(time.Second)
	if ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok || ev.Exit.Lost {
		t.Errorf("a launch of now: %+v", ev)
	}
}

// TestWhatAPowerCutLeavesOfARecord: the file without what was written to it. It stands in nobody's way, and one of now is
// not touched.
func TestWhatAPowerCutLeavesOfARecord(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	file := b.e.PIDFile("w-1/A#1.1")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Adopt(file); !errors.Is(err, agents.ErrTorn) {
		t.Fatalf("a torn record of now: %v", err)
	}
	for _, kind := range []string{engine.DoRun, engine.DoStop} { // a failed disk was repaired: it is ended, lost, and not started again
		j := b.stepJob("A", 1, 1)
		j.Kind = kind
		if ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
			t.Errorf("%s of a torn record of now: %+v", kind, ev)
		}
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s of a torn record of now: %v", kind, err)
		}
	}
	before := b.e.Booted().Add(-time.Minute)
	if err := os.Chtimes(file, before, before); err != nil {
		t.Fatal(err)
	}
	j := b.stepJob("A", 1, 1)
	j.Attempt.Launched = before
	if ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
		t.Errorf("%+v", ev)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, before, before); err != nil {
		t.Fatal(err)
	}
	stop := b.stepJob("A", 1, 1)
	stop.Kind = engine.DoStop
	if ev, ok := b.e.Carry(b.ctx(), stop, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
		t.Errorf("stop: %+v", ev)
	}
}

// TestALaunchAfterTheClockWasSetBack: many machines start with a clock that is hours ahead, which the network sets right a
// moment later. What is decided from then on is started all the same, by the next daemon too.
func TestALaunchAfterTheClockWasSetBack(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	if err := os.Remove(filepath.Join(b.state, "boot")); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Hour))
	began := time.Now()
	clock := func(o *Options) { // the steady clock is not set
		o.Now = func() time.Time {
			return twoclocks.Time(time.Now().Add(time.Duration(ahead.Load())), time.Since(began))
		}
	}
	e := b.executor(clock)
	before := e.opt.Now().Round(0).Add(-3 * time.Hour)
	ahead.Store(0)
	for n, e := range []*World{e, b.executor(clock)} {
		j := b.stepJob("A", n+1, 1)
		j.Attempt.Launched = e.opt.Now().Round(0) // as the journal has it
		if ev, ok := e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok || ev.Exit.Lost || ev.Exit.Code != 0 {
			t.Errorf("daemon %d, a launch of now: %+v", n, ev)
		}
	}
	j := b.stepJob("A", 3, 1)
	j.Attempt.Launched = before
	if ev, ok := e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
		t.Errorf("a launch of before the machine's start: %+v", ev)
	}
}

// TestEndedWithTheService: what was lost when somebody stopped the service, or the machine went down in order, is launched
// again and counts for nothing; what was lost at another time counts.
func TestEndedWithTheService(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"echo $PPID >host.tmp; mv host.tmp host; exec sleep 1000"`, 1))
	var put atomic.Int64
	b.e = b.executor(func(o *Options) { o.PutDown = func() time.Time { return time.Unix(0, put.Load()) } })
	lose := func(n int) engine.Exit {
		t.Helper()
		running := background(b.ctx(), b.e, b.stepJob("A", n, 1), nil)
		eventually(t, "it runs", func() bool { return b.has("host") })
		pid, err := strconv.Atoi(strings.TrimSpace(b.get("host")))
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			put.Store(time.Now().UnixNano())
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ev := (<-running).(engine.ProcessEnded)
		if err := os.Remove(b.path("host")); err != nil {
			t.Fatal(err)
		}
		return ev.Exit
	}
	before := time.Now()
	if x := lose(1); !x.Lost || x.Class != engine.ClassLimit || x.ResumeAt.Before(before) || x.ResumeAt.After(time.Now()) {
		t.Errorf("ended with the service: %+v", x)
	}
	if x := lose(2); !x.Lost || x.Class != "" {
		t.Errorf("begun after that: %+v", x)
	}
	put.Store(time.Now().Add(time.Hour).UnixNano())
	if x := lose(3); !x.Lost || x.Class != "" {
		t.Errorf("it was stopped before the clock was set back: %+v", x)
	}
}

// TestCheckLostWithTheMachine: a criterion's command whose end nobody saw is run again; one that ends its own host each
// time comes to an end.
func TestCheckLostWithTheMachine(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "true", success_criterion: "echo x >>$HOME/once; [ $(wc -l <$HOME/once) != 1 ] || kill -9 $PPID exits 0", next_step: B}
  - {id: B, run: "true", success_criterion: "echo x >>$HOME/always; kill -9 $PPID exits 0", next_step: DONE}
`)
	if r := b.carry(b.checkJob("A", 1)).Check; !r.OK || b.get("once") != "x\nx\n" {
		t.Errorf("lost once: %+v after %q", r, b.get("once"))
	}
	if r := b.carry(b.checkJob("B", 1)).Check; r.OK || r.Broken == "" || b.get("always") != "x\nx\nx\n" {
		t.Errorf("lost each time: %+v after %q", r, b.get("always"))
	}
}
