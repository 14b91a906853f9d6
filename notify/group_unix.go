//go:build unix && !linux

package notify

import (
	"os/exec"
	"syscall"
)

// runGroup runs cmd in a process group of its own until it ends or stop is
// closed, then kills what is left of the group.
//
// There is no portable way to see the leader end without reaping it; in the
// moment between the two its number could in theory name a new group.
func runGroup(cmd *exec.Cmd, stop <-chan struct{}) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-stop:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		return <-ended
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return err
}

// apart has cmd run in a session of its own.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
