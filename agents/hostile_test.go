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

// TestAFaultTooLongForItsRecord: what keeps a command from starting is told,
// however long its name and its PATH are, and is known to the next daemon.
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

// TestAnEndIsKeptWhileTheDiskIsFull: a disk may be full, or an error have made
// it read-only, until a person comes by in the morning. The machine's shutdown
// is not held up by it.
func TestAnEndIsKeptWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(full)
		pidFile := filepath.Join(t.TempDir(), "pid")
		file, err := claim(pidFile, identity{Version: recordVersion, Pid: os.Getpid(), Start: "1", Boot: "1", Launched: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		real := file.fd
		file.fd = full
		defer func() { unix.Close(real) }()
		term := make(chan os.Signal, 1)
		s := &shim{file: file, term: term}
		began := time.Now()
		term <- syscall.SIGTERM
		if code := s.finish(&Exit{}); code != shimSilent || time.Since(began) > 2*recordLast || !s.termed {
			t.Errorf("asked to end: code %d after %v", code, time.Since(began))
		}
		s = &shim{file: file, term: term}
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
