package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// launching is a launch that is being begun, again and again until it has.
type launching struct {
	Order
	ls      *Launches
	prepare func() (Process, error)
	slot    slot // an agent's; kept over all tries
}

// begin adopts the launch or starts it. A Refusal is its end: nothing is left to wait for.
func (n *launching) begin(ctx context.Context) (*agents.Proc, error) {
	ls, l := n.ls, n.Order
	proc, err := ls.Adopt(ls.PIDFile(l.Key))
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		if l.Agent {
			n.slot.keep()
		}
		ls.keepPrivate(l.Key)
		return proc, nil
	case errors.Is(err, agents.ErrTorn), absent && ls.Boot.after(l.Since, ls.opt.Now):
		// A power cut or a failed disk may have lost the launch's record. After the failed disk its
		// process may still run.
		if err := ls.endTorn(ctx, l.Key); err != nil {
			return nil, err
		}
		x := engine.Exit{Code: -1, Lost: true}
		ls.forgive(&x, l.Since, time.Time{})
		return nil, &job.Refusal{Exit: x}
	case !absent:
		return nil, err
	}
	// The order holds: a launch that is not prepared takes no slot.
	p, err := n.prepared(ctx)
	if err == nil && l.Agent {
		err = n.slot.take(ctx, ls.opt.Settings().MaxAgents, l.Clock.hold)
	}
	if err != nil {
		return nil, err
	}
	return ls.start(ctx, l, p)
}

// prepared prepares a launch, unless the day's budget forbids it. An error that may pass is no Refusal.
func (n *launching) prepared(ctx context.Context) (Process, error) {
	if n.Agent {
		if err := n.ls.dayTaken(n.job()); err != nil {
			return Process{}, err
		}
	}
	p, err := n.prepare()
	var no *job.Refusal
	if err == nil || errors.As(err, &no) || health.Passing(err) || ctx.Err() != nil {
		return p, err
	}
	return p, job.Unready("%v", err)
}

// Adopt returns the launch of a pid file. The error is fs.ErrNotExist if there is none, or only
// what a power cut left of one, which is removed.
func (ls *Launches) Adopt(pidFile string) (*agents.Proc, error) {
	proc, err := ls.opt.Runner.Adopt(pidFile, "")
	if !errors.Is(err, agents.ErrTorn) {
		return proc, err
	}
	if info, serr := os.Lstat(pidFile); serr != nil || !info.ModTime().Before(ls.Booted()) {
		return nil, err
	}
	if err := os.Remove(pidFile); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", pidFile, fs.ErrNotExist)
}

// endTorn ends a launch whose record was lost with a failed disk; its token identifies it. What is
// left of the record stays, so that nothing starts under the key again.
func (ls *Launches) endTorn(ctx context.Context, key string) error {
	return ls.opt.Runner.Stop(ctx, agents.Spec{Key: key, PidFile: ls.PIDFile(key), Token: ls.Token(key)})
}

// start starts the process. A start is never interrupted: whoever stops the launch afterwards finds
// it.
func (ls *Launches) start(ctx context.Context, l Order, p Process) (*agents.Proc, error) {
	in, err := ls.Below(l.Dir + "/stdout") // nor is its folder a link
	if err != nil {
		return nil, err
	}
	under := ""
	if l.Of != "" && l.Of != l.Key {
		under = ls.PIDFile(l.Of)
	}
	spec := agents.Spec{
		Key: l.Key, Dir: filepath.Dir(in), Below: filepath.Join(ls.Root, layout.WorkflowDir), PidFile: ls.PIDFile(l.Key),
		Under: under, Argv: p.Argv, Env: p.Env, Cwd: p.Cwd, Stdin: p.Stdin, Sealed: p.Told,
		Token: ls.Token(l.Key), KillAfter: time.Duration(ls.opt.Settings().KillAfter),
	}
	if err := ls.contain(ctx, l, p, &spec); err != nil {
		ls.dropGit(l.Key, false)
		ls.ends(l.Key) // nothing runs, and nothing else releases its resources
		return nil, err
	}
	proc, err := ls.opt.Runner.Ensure(context.WithoutCancel(ctx), spec)
	if spec.Cage != nil { // while the sandbox is being created
		ls.keepPrivate(l.Key)
		if err == nil {
			ls.makeAhead()
		}
	}
	return proc, err
}

// unbegun releases the checkout of a launch that was prepared and not started.
func (ls *Launches) unbegun(key string) {
	if _, err := os.Lstat(ls.PIDFile(key)); errors.Is(err, fs.ErrNotExist) {
		ls.Cage.opt.Vacate(ls.PIDFile(key))
	}
}
