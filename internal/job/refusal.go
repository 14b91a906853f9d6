package job

import (
	"fmt"

	"sluice/engine"
)

// Refusal is the error of a process that is not started: its Exit takes the place of the process's.
type Refusal struct{ Exit engine.Exit }

func (r *Refusal) Error() string { return r.Exit.Refused + r.Exit.NotStarted }

// Refused returns a Refusal that blames the work or its spec: the attempt fails.
func Refused(format string, args ...any) error {
	return &Refusal{engine.Exit{Code: -1, Refused: fmt.Sprintf(format, args...)}}
}

// Unready returns a Refusal that blames neither: it is launched again, as often
// as the step's restarts allow.
func Unready(format string, args ...any) error {
	return &Refusal{engine.Exit{Code: -1, NotStarted: fmt.Sprintf(format, args...)}}
}

// Fatal returns a Refusal that only a person can remove: the run pauses.
func Fatal(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	return &Refusal{engine.Exit{Code: -1, NotStarted: why, Class: engine.ClassFatal, Why: why}}
}

// NoGit returns the Refusal for a checkout in dir that git cannot read.
func NoGit(dir string, err error) error {
	return Unready("git in %s: %v: the changes of the step could not be read: fix the checkout", dir, err)
}

// NoWorktree returns the Refusal for a run's worktree that git takes for a part of the checkout around it.
func NoWorktree(dir string) error {
	return Unready("worktree %s: its .git is gone or leads nowhere: run `git worktree repair`, or move the folder away "+
		"and run `git worktree prune`", dir)
}
