//go:build unix

package git

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// ownSession takes git away from our terminal, where ssh would ask for a password, and has the end of
// its time limit reach what it started too.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// inherit leaves a file open in a git.
func inherit(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }

func rootDir() string { return "/" }

// mine reports whether a file is this user's.
func mine(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

func systemEnv() []string { return nil }
