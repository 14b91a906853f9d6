//go:build linux || darwin

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestAFaultTooLongForItsRecord: a reason why a command cannot start is reported, however long its
// name and its PATH are, and the next daemon can read it.
func TestAFaultTooLongForItsRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"name": func(s *Spec) { s.Argv = []string{"/" + strings.Repeat("x", 2*maxRecordBytes)} },
		"path": func(s *Spec) { s.Env[0] = "PATH=/" + strings.Repeat("<", maxRecordBytes) },
		"byte": func(s *Spec) { s.Argv = []string{"/" + strings.Repeat("\x01", maxRecordBytes/2)} },
		"cwd":  func(s *Spec) { s.Cwd = "/" + strings.Repeat("\x01", maxRecordBytes) },
	} {
		spec := testSpec(t, "")
		change(&spec)
		if e := wait(t, ensure(t, newRunner(), spec)); e.NotStarted == "" || e.Lost {
			t.Errorf("%s: lost %v, not started %.80q", name, e.Lost, e.NotStarted)
		}
		p, err := newRunner().Adopt(spec.PidFile, "")
		if err != nil {
			t.Errorf("%s: adopted: %v", name, err)
		} else if e := wait(t, p); e.NotStarted == "" || e.Lost {
			t.Errorf("%s: adopted: lost %v, not started %.80q", name, e.Lost, e.NotStarted)
		}
	}
}

// TestAnEndIsKeptWhileTheDiskIsFull: a disk may be full, or read-only after an error, until a
// person comes in the morning. A shutdown does not wait for it.
func TestAnEndIsKeptWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(full)
		pidFile := filepath.Join(t.TempDir(), "pid")
		here := &place{}
		if err := here.claim(pidFile, identity{Version: recordVersion, Pid: os.Getpid(), Start: "1", Boot: "1", Launched: time.Now()}); err != nil {
			t.Fatal(err)
		}
		real := here.file.fd
		here.file.fd = full
		defer func() { unix.Close(real) }()
		term := make(chan os.Signal, 1)
		s := &shim{place: here, term: term}
		began := time.Now()
		term <- syscall.SIGTERM
		if code := s.finish(&Exit{}); code != shimSilent || time.Since(began) > 2*recordLast || !s.termed {
			t.Errorf("asked to end: code %d after %v", code, time.Since(began))
		}
		s = &shim{place: here, term: term}
		time.AfterFunc(time.Hour, func() {
			if err := dup(real, full); err != nil {
				t.Error(err)
			}
		})
		if code := s.finish(&Exit{Code: 7}); code != shimDone {
			t.Errorf("code %d", code)
		}
		if id, err := readIdentity(pidFile); err != nil || id.Ended == nil || id.Ended.Code != 7 {
			t.Errorf("%+v %v", id, err)
		}
	})
}

// TestOutputThatWasTakenAwayComesBack: with its folder, and repeatedly.
func TestOutputThatWasTakenAwayComesBack(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `echo first; until test -s attempt/stdout; do sleep 0.01; done; rm -rf attempt; sleep 1.2; echo second; until grep second attempt/stdout; do sleep 0.01; done; rm -rf attempt; echo last; exit 9`)
	spec.MaxOutput = MinMaxOutput
	if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 9 || e.Lost {
		t.Errorf("%+v, want code 9", e)
	}
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "first\nsecond\nsecond\nlast\n" {
		t.Errorf("%q", got)
	}
}

// TestOutputWithoutItsFolder: the folder was removed before there was a file, and again when the
// head was full.
func TestOutputWithoutItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "attempt")
	s := newSink("", filepath.Join(dir, "stdout"), MinMaxOutput)
	s.Write([]byte("first\n"))
	if got := content(t, s.path); got != "first\n" {
		t.Errorf("%q", got)
	}
	s.Write(make([]byte, MinMaxOutput/2))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("last\n"))
	s.close()
	if got := content(t, s.path); !strings.HasSuffix(got, "last\n") {
		t.Errorf("%q", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}
