//go:build !unix

package notify

import "os/exec"

// runGroup runs cmd until it ends or stop is closed, then kills it. It kills
// the process alone: what that started is left to end by itself.
func runGroup(cmd *exec.Cmd, stop <-chan struct{}) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-stop:
		_ = cmd.Process.Kill()
		return <-ended
	}
}

// apart does nothing: a process here outlives the one that started it anyway.
func apart(*exec.Cmd) {}
