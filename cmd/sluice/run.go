package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/text"
	"sluice/journal"
)

// run runs one command line and returns the exit code. ctx ends on the first Ctrl-C or TERM.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(env, stdin, stdout, stderr)
	a.Done = ctx.Done()
	out := &checked{w: stdout}
	if _, yes := console.Terminal(stdout); !yes {
		a.Out = out
	}
	root := rootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fault.Failed("free some disk space, or write it elsewhere; what the command did counts",
			"the output is not complete: %w", out.err)
	}
	return reportError(&a.Console, err)
}

// checked keeps the first error of writing, which those who print do not look at.
type checked struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// reportError prints the error and returns the exit code.
func reportError(con *console.Console, err error) int {
	if err == nil {
		return fault.ExitOK
	}
	if end, ok := errors.AsType[fault.Exit](err); ok {
		return int(end)
	}
	f := explain(err)
	con.Report(f)
	return f.Code
}

// Short names for frequent calls.

func oneLine(s string) string         { return text.Message(s) }
func clean(s string) string           { return text.Line(s) }
func plural(n int, one string) string { return text.Plural(n, one) }

// explain returns what to tell a person about an error. It keeps a command's error, and adds what
// it knows to one of the packages below, with that error's advice and exit code.
func explain(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code != 0 {
		return f
	}
	what, advice := fault.Split(err)
	whole := &fault.Error{Cause: err.Error(), Code: fault.ExitFailed, Err: err}
	var damage *journal.Damage
	var held *daemon.Held
	switch {
	case errors.As(err, &held):
		whole.Cause, whole.Advice, whole.Code = what, advice, fault.ExitServed
	case errors.Is(err, daemon.ErrStopped), errors.Is(err, daemon.ErrNotServed):
		whole.Advice = "the process that served it has just ended, as `sluice run` does with its run: give the same " +
			"command again; `sluice status` shows the runs"
	case errors.Is(err, context.Canceled):
		whole.Cause, whole.Code = "interrupted", fault.ExitInterrupted
	case errors.As(err, &damage):
		whole.Cause, whole.Code = fmt.Sprintf("the journal is damaged: %s, line %d: %s", damage.File, damage.Line,
			damage.Why), fault.ExitDamaged
		whole.Advice = fmt.Sprintf("look at the file; then `sluice journal repair --to %d` keeps the valid part", damage.Good)
		if damage.Snapshot > 0 {
			whole.Advice = fmt.Sprintf("runs continue from a snapshot of record %d, so nothing must be cut off; restore the "+
				"file from a copy while no daemon runs", damage.Snapshot)
		}
	case errors.Is(err, git.ErrNoRepo):
		whole.Advice = "go to your repo, or create one here: `git init`"
	case errors.Is(err, syscall.ENOSPC):
		whole.Advice = "free some disk space: nothing was lost, and the same command continues where this one stopped"
	case errors.Is(err, syscall.EROFS):
		whole.Advice = "the file system is read-only: mount it writable, or use a checkout that is"
	case errors.Is(err, fs.ErrPermission):
		whole.Advice = "find the owner of the file (`ls -l`), and run sluice as that user"
	default:
		whole.Cause, whole.Advice = what, advice
	}
	return whole
}
