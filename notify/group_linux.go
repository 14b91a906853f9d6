package notify

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// runGroup runs cmd in its own process group until it ends or stop is closed, then kills the rest
// of the group.
//
// It detects the leader's end without reaping it (WNOWAIT), so that the group's id cannot be reused
// before the group is killed.
func runGroup(cmd *exec.Cmd, stop <-chan struct{}) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if err != unix.EINTR {
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-stop:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return cmd.Wait()
}
