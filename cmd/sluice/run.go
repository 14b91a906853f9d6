package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"sluice/agents"
	cage "sluice/agents/sandbox"
	"sluice/daemon"
	"sluice/internal/git"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/notify"
)

// Exit codes, as the documents have them.
const (
	exitOK          = 0
	exitFailed      = 1   // the command did not do its work: the run failed, the spec is invalid
	exitUsage       = 2   // wrong usage
	exitAborted     = 3   // the run was aborted
	exitWaiting     = 4   // --timeout ran out
	exitServed      = 75  // another process serves this repo
	exitDamaged     = 78  // the journal is damaged
	exitInterrupted = 130 // Ctrl-C
)

// The commands that this binary runs for itself, as processes of their own.
const (
	shimCommand   = "shim"
	notifyCommand = "notify-helper"
)

// inner runs the commands that sluice starts of itself, before anything else is set up: they live long, or must not hang.
func inner(args []string, stdin io.Reader) (code int, ours bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case shimCommand:
		return agents.ShimMain(args[1:]), true
	case notifyCommand:
		return notify.HelperMain(stdin), true
	case cage.CheckCommand:
		return cage.CheckMain(args[1:]), true
	}
	return 0, false
}

// run carries out one command line and gives the exit code. ctx ends on the first Ctrl-C or TERM.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(env, stdin, stdout, stderr)
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.report(err)
}

// fault is what a person is told when a command does not do its work: one line of cause, one of mend.
type fault struct {
	cause string
	mend  string // "" = none is known
	code  int
	err   error // what it came from, or nil
}

func (f *fault) Error() string { return f.cause }
func (f *fault) Unwrap() error { return f.err }

// failed is a fault with exit code 1.
func failed(mend, format string, args ...any) error {
	return &fault{cause: fmt.Sprintf(format, args...), mend: mend, code: exitFailed}
}

// misused is a fault of the command line.
func misused(mend, format string, args ...any) error {
	return &fault{cause: fmt.Sprintf(format, args...), mend: mend, code: exitUsage}
}

// ended is an exit code alone: everything was said already.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// report tells the error and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	var end ended
	if errors.As(err, &end) {
		return int(end)
	}
	f := asFault(err)
	fmt.Fprintf(a.err, "%s %s\n", a.paintErr(red, "sluice:"), oneLine(f.cause))
	if f.mend != "" {
		fmt.Fprintf(a.err, "  %s %s\n", a.paintErr(dim, "→"), oneLine(f.mend))
	}
	return f.code
}

func oneLine(s string) string { return text.Clean(s, maxMessage) }

// maxMessage is how many characters of a message are shown.
const maxMessage = 1000

// asFault finds what to say about an error of the packages below.
func asFault(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	f = &fault{cause: err.Error(), code: exitFailed, err: err}
	var damage *journal.Damage
	var held *daemon.Held
	switch {
	case errors.As(err, &held):
		f.code, f.mend = exitServed, splitMend(&f.cause)
	case errors.Is(err, daemon.ErrStopped), errors.Is(err, daemon.ErrNotServed):
		f.mend = "the process that served it has just ended, as `sluice run` does with its run: give the same command again; `sluice status` tells how the runs stand"
	case errors.Is(err, context.Canceled):
		f.cause, f.mend, f.code = "interrupted", "", exitInterrupted
	case errors.As(err, &damage):
		f.cause, f.code = fmt.Sprintf("the journal is damaged: %s, line %d: %s", damage.File, damage.Line, damage.Why), exitDamaged
		f.mend = fmt.Sprintf("look at the file; then `sluice journal repair --to %d` keeps what is good", damage.Good)
		if damage.Snapshot > 0 {
			f.mend = fmt.Sprintf("runs go on from a snapshot of record %d: nothing has to be cut off; restore the file from a copy while no daemon runs", damage.Snapshot)
		}
	case errors.Is(err, git.ErrNoRepo):
		f.mend = "go to your repo, or make one here: `git init`"
	case errors.Is(err, syscall.ENOSPC):
		f.mend = "make room on the disk: nothing was lost, and the same command goes on where this one stopped"
	case errors.Is(err, syscall.EROFS):
		f.mend = "the file system is read-only: mount it writable, or go to a checkout that is"
	case errors.Is(err, fs.ErrPermission):
		f.mend = "see who owns the file (`ls -l`), and that you run sluice as that user"
	default:
		f.mend = splitMend(&f.cause)
	}
	return f
}

// splitMend takes the last part of "what: why: what to do" off a long message, so that it stands on a line of its own.
func splitMend(cause *string) string {
	i := strings.LastIndex(*cause, ": ")
	if i < 0 || strings.Count(*cause, ": ") < 2 || strings.ContainsAny((*cause)[i:], "\n\"") {
		return ""
	}
	mend := (*cause)[i+2:]
	if !strings.Contains(mend, " ") {
		return ""
	}
	*cause = (*cause)[:i]
	return mend
}
