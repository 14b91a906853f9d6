package notify

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// runGroup runs cmd in a process group of its own until it ends or stop is
// closed, then kills what is left of the group.
//
// The leader is seen to end without being reaped (WNOWAIT), so that its id,
// which is the group's, cannot belong to anybody else when the group is killed.
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

// apart has cmd run in a session of its own.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
