//go:build unix && !linux

package notify

import (
	"os/exec"
	"syscall"
)

// runGroup runs cmd in its own process group until it ends or stop is closed, then kills the rest
// of the group.
//
// There is no portable way to detect the leader's end without reaping it. In between, its number
// could in theory be reused for a new group.
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
