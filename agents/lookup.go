package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

const defaultPath = "/usr/local/bin:/usr/bin:/bin" // used without a PATH

// CommandError is why a command cannot be started that a person has to install, or to name
// otherwise.
type CommandError struct{ Err error }

func (e *CommandError) Error() string { return e.Err.Error() }
func (e *CommandError) Unwrap() error { return e.Err }

// ErrNotExecutable is why a file that exists cannot be started.
var ErrNotExecutable = errors.New("not executable")

// LookUp finds the file of argv[0]. Its errors are CommandErrors.
func LookUp(name string, env []string, cwd string) (string, error) {
	file, err := lookUp(name, env, cwd)
	if err != nil {
		return "", &CommandError{err}
	}
	return file, nil
}

func lookUp(name string, env []string, cwd string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(cwd, file)
		}
		if err := runnable(file); err != nil {
			return "", fmt.Errorf("command %s: %w", file, err)
		}
		return file, nil
	}
	search := defaultPath
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	var near error
	for dir := range strings.SplitSeq(search, ":") {
		if !filepath.IsAbs(dir) {
			continue // it would run files from the folder an agent works in
		}
		file := filepath.Join(dir, name)
		err := runnable(file)
		if err == nil {
			return file, nil
		}
		if near == nil && !errors.Is(err, os.ErrNotExist) {
			near = fmt.Errorf("command %s: %w", file, err)
		}
	}
	if near != nil {
		return "", near
	}
	return "", fault.New("install it, or give its full path", "command %q: not found in PATH=%s", name, search)
}

func runnable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fault.New("install it or correct the path", "%w", fault.WithoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return fault.New("give the path of a program", "not a file")
	}
	if unix.Access(file, unix.X_OK) != nil { // not for this user
		return fault.New("chmod +x it", "%w", ErrNotExecutable)
	}
	return nil
}
