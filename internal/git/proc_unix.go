//go:build unix

package git

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// ownSession detaches git from our terminal, where ssh would ask for a password, and makes a
// time-out kill git's children too.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// inherit leaves a file open in a git.
func inherit(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }

func rootDir() string { return "/" }

// mine reports whether this user owns a file.
func mine(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

func systemEnv() []string { return nil }
