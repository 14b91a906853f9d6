//go:build !unix

package git

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// ownSession does nothing here: the end of the time limit reaches git itself only.
func ownSession(*exec.Cmd) {}

// inherit does nothing: files are not locked on these systems.
func inherit(*exec.Cmd, *os.File) {}

// rootDir is a folder that is in no repo, as far as this system has one that is sure to be there.
func rootDir() string { return filepath.VolumeName(os.TempDir()) + `\` }

// mine: each user has a temporary folder of their own here.
func mine(fs.FileInfo) bool { return true }

// systemEnv is what programs need on Windows to start at all.
func systemEnv() []string {
	var env []string
	for _, name := range []string{"SystemRoot", "ComSpec", "TEMP", "TMP", "PATHEXT"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
