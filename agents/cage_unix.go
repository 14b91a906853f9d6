//go:build linux || darwin

package agents

import (
	"os"
	"runtime"
	"slices"
	"sync"
)

// apart runs calls one after the other in a dedicated thread that lives as long as the process: a
// sandbox ends with the thread that started it, and a child inherits the keyring that its thread
// joined.
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

// program returns the command, or the sandbox around it. The sandbox program works outside, so its
// environment has nothing from a step or a role; the token is there for the sweep.
func (s Spec) program() (argv, env []string) {
	if s.Cage == nil {
		return s.Argv, withPwd(s)
	}
	env = slices.Clone(s.Cage.Env)
	if s.Token != "" && runtime.GOOS == "linux" { // elsewhere the environment is the command's own
		env = append(env, TokenVar+"="+s.Token)
	}
	return s.Cage.Argv, env
}

// wrapper returns the program of the launch's sandbox, or "".
func (s Spec) wrapper() string {
	if s.Cage == nil {
		return ""
	}
	return s.Cage.Argv[0]
}

// handed returns the sandbox's descriptors beyond a command's three, and the files to close once it
// has them.
func (s *shim) handed() (fds []uintptr, files []*os.File, err error) {
	if s.spec.Cage == nil {
		return nil, nil, nil
	}
	if files, err = s.spec.Cage.Files(); err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		fd := ^uintptr(0) // closed in the sandbox
		if f != nil {
			fd = f.Fd()
		}
		fds = append(fds, fd)
	}
	return append(fds, s.way.files()...), files, nil
}

// closeAll closes files. A nil one, which was never opened, takes no harm.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
