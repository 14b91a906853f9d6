//go:build linux || darwin

package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/conform"
)

// TestALaunchOfBeforeTheMachinesStartIsLost: a power cut may have taken its record, so that it looks as if it had never been.
func TestALaunchOfBeforeTheMachinesStartIsLost(t *testing.T) {
	conform.Rule(t, "3-engine keys", "a launch is never made twice, a power cut between")
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	job := b.stepJob("A", 1, 1)
	job.Attempt.Launched = b.e.booted().Add(-time.Second)
	ev, ok := b.e.Carry(b.ctx(), job, nil).(engine.ProcessEnded)
	if !ok || !ev.Exit.Lost || ev.Exit.NotStarted != "" {
		t.Fatalf("%+v", ev)
	}
	if b.has(".workflow/runs/w-1/A.1/stdout") {
		t.Error("it was started")
	}
	job = b.stepJob("A", 2, 1)
	job.Attempt.Launched = b.e.booted().Add(time.Second)
	if ev, ok := b.e.Carry(b.ctx(), job, nil).(engine.ProcessEnded); !ok || ev.Exit.Lost {
		t.Errorf("a launch of now: %+v", ev)
	}
}

// TestTheMachinesStartIsKnownAgain: another start of the daemon in the same start of the machine changes nothing.
func TestTheMachinesStartIsKnownAgain(t *testing.T) {
	state, first := t.TempDir(), time.Now()
	for i := range 2 {
		got, err := bootedIn(state, first.Add(time.Duration(i)*time.Hour))
		if err != nil || !got.Since.Equal(first) {
			t.Errorf("start %d: %v %v", i, got, err)
		}
	}
	if err := keep(state+"/"+bootFile, boot{ID: "another", Since: first}); err != nil {
		t.Fatal(err)
	}
	later := first.Add(time.Hour)
	if got, err := bootedIn(state, later); err != nil || !got.Since.Equal(later) {
		t.Errorf("after a restart of the machine: %v %v", got, err)
	}
}

// TestWhatAPowerCutLeavesOfARecord: the file without what was written to it. It stands in nobody's way, and one of now is
// not touched.
func TestWhatAPowerCutLeavesOfARecord(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 0"`, 1))
	file := b.e.pidFile("w-1/A#1.1")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.adopt(file); !errors.Is(err, agents.ErrTorn) {
		t.Fatalf("a torn record of now: %v", err)
	}
	for _, kind := range []string{engine.DoRun, engine.DoStop} { // a disk that failed was mended: it is ended, lost, and not started again
		job := b.stepJob("A", 1, 1)
		job.Kind = kind
		if ev, ok := b.e.Carry(b.ctx(), job, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
			t.Errorf("%s of a torn record of now: %+v", kind, ev)
		}
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s of a torn record of now: %v", kind, err)
		}
	}
	before := b.e.booted().Add(-time.Minute)
	if err := os.Chtimes(file, before, before); err != nil {
		t.Fatal(err)
	}
	job := b.stepJob("A", 1, 1)
	job.Attempt.Launched = before
	if ev, ok := b.e.Carry(b.ctx(), job, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
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
	if err := os.Remove(filepath.Join(b.state, bootFile)); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Hour))
	clock := func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	e := b.executor(clock)
	before := e.opt.Now().Add(-3 * time.Hour)
	ahead.Store(0)
	for n, e := range []*Executor{e, b.executor(clock)} {
		job := b.stepJob("A", n+1, 1)
		job.Attempt.Launched = e.opt.Now()
		if ev, ok := e.Carry(b.ctx(), job, nil).(engine.ProcessEnded); !ok || ev.Exit.Lost || ev.Exit.Code != 0 {
			t.Errorf("daemon %d, a launch of now: %+v", n, ev)
		}
	}
	job := b.stepJob("A", 3, 1)
	job.Attempt.Launched = before
	if ev, ok := e.Carry(b.ctx(), job, nil).(engine.ProcessEnded); !ok || !ev.Exit.Lost {
		t.Errorf("a launch of before the machine's start: %+v", ev)
	}
}
