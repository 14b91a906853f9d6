package job

import (
	"fmt"

	"sluice/engine"
)

// Refusal is why a process is not started at all.
type Refusal struct{ Exit engine.Exit }

func (r *Refusal) Error() string { return r.Exit.Refused + r.Exit.NotStarted }

// Refused is a fault of the work or its spec: the attempt has failed before its launch.
func Refused(format string, args ...any) error {
	return &Refusal{engine.Exit{Code: -1, Refused: fmt.Sprintf(format, args...)}}
}

// Unready is what keeps the process from being started though the work is not to blame.
func Unready(format string, args ...any) error {
	return &Refusal{engine.Exit{Code: -1, NotStarted: fmt.Sprintf(format, args...)}}
}

// Fatal is what a person has to fix.
func Fatal(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	return &Refusal{engine.Exit{Code: -1, NotStarted: why, Class: engine.ClassFatal, Why: why}}
}

// NoGit is of a checkout that git cannot read, though the repo is one.
func NoGit(dir string, err error) error {
	return Unready("git in %s: %v: the changes of the step could not be read: fix the checkout", dir, err)
}
