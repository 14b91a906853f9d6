//go:build linux || darwin

package agents

import (
	"os"
	"runtime"
	"sync"
)

// apart makes calls one after the other in a thread that does nothing else and lives as long as the process: a sandbox ends
// with the thread that has started it, and what a thread has joined is inherited by what it starts.
type apart struct {
	once  sync.Once
	calls chan func()
}

func (a *apart) call(f func()) {
	a.once.Do(func() {
		a.calls = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range a.calls {
				f()
			}
		}()
	})
	done := make(chan struct{})
	a.calls <- func() { defer close(done); f() }
	<-done
}

// program returns what is started: the command, or the sandbox around it. That one's environment has nothing that a step or
// a role sets, as it works outside; the token is there for the sweep.
func (s Spec) program() (argv, env []string) {
	if s.Cage == nil {
		return s.Argv, withPwd(s)
	}
	env = append([]string{}, s.Cage.Env...)
	if s.Token != "" && runtime.GOOS == "linux" { // elsewhere the environment is that of the command
		env = append(env, TokenVar+"="+s.Token)
	}
	return s.Cage.Argv, env
}

// wrapper is the program of the launch's sandbox; "" where it has none.
func (s Spec) wrapper() string {
	if s.Cage == nil {
		return ""
	}
	return s.Cage.Argv[0]
}

// handed are the descriptors that a sandbox is given beside the three of each command, and what has to be closed once it
// has them.
func (s *shim) handed() (fds []uintptr, files []*os.File, err error) {
	if s.spec.Cage == nil {
		return nil, nil, nil
	}
	if files, err = s.spec.Cage.Files(); err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		fd := ^uintptr(0) // is closed there
		if f != nil {
			fd = f.Fd()
		}
		fds = append(fds, fd)
	}
	return append(fds, s.way.files()...), files, nil
}

// closeAll closes what is there.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
