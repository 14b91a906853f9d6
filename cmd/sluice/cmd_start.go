package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
)

// order is an order to run or start a workflow.
type order struct {
	workflow string
	vars     []string
	set      []string
	parallel bool
	// The script of the run's stand-ins; workflows.UsualScript = the workflow's own, "" = a real
	// run.
	stub    string
	timeout time.Duration

	before func(context.Context) error // a condition of a new run, not of a live one; nil = none
}

func (o *order) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.vars, "var", nil, "a value for the workflow: `NAME=VALUE`; repeatable")
	cmd.Flags().BoolVar(&o.parallel, "parallel", false, "run beside a live run of the same workflow")
	cmd.Flags().StringVar(&o.stub, "stub", "",
		"stubs play the agents: no model, no key; script: `FILE`, else "+layout.StubsDir+"/WORKFLOW.yaml")
	cmd.Flags().Lookup("stub").NoOptDefVal = workflows.UsualScript
}

// name sets the workflow: the first of args, else the repo's only one.
func (o *order) name(p *workspace.Workspace, args []string) (err error) {
	if len(args) > 0 {
		o.workflow = args[0]
		return nil
	}
	o.workflow, err = workflows.Only(p)
	return err
}

// ofNewRuns refuses flags for new runs if an existing run is to continue.
func (o *order) ofNewRuns(run string) error {
	flag := ""
	switch {
	case len(o.vars) > 0:
		flag = "--var"
	case o.stub != "":
		flag = "--stub"
	case o.parallel:
		flag = "--parallel"
	default:
		return nil
	}
	return fault.Misused("name the workflow to start another run of it",
		"%s is for a new run, and %s was started before: it continues as it was started", flag, run)
}

func startCommand(a *app) *cobra.Command {
	var o order
	var wait bool
	cmd := &cobra.Command{
		Use:   "start [WORKFLOW]",
		Short: "have the daemon start a run and print its id",
		Long: `The run continues in the background. A repo's only workflow need not be named. With --wait the
command returns when the run has ended, with the exit codes of run. --timeout limits the wait and
exits 4.`,
		Example: "sluice start gated-pipeline --var task=\"an index\"\nsluice start phase-4 --var goal=\"faster search\" " +
			"--wait --timeout 2h",
		Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout > 0 && !wait {
				return fault.Misused("add --wait", "--timeout needs --wait")
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			if err := o.name(p, args); err != nil {
				return err
			}
			return startRun(cmd.Context(), a, p, o, wait)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the run has ended")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait: wait at most this `TIME`, such as 30m")
	return a.JSONFlag(cmd)
}

func startRun(ctx context.Context, a *app, p *workspace.Workspace, o order, wait bool) error {
	ev, err := requestOf(ctx, a, p, o)
	if err != nil {
		return err
	}
	s, err := p.Serving(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return fault.Failed("`sluice run "+o.workflow+
			"` runs it in the foreground; `sluice watch add` and `sluice daemon` serve it in the background",
			"no daemon serves %s now", p.Root)
	}
	defer s.Close()
	done, _, err := launchRun(ctx, s, ev)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.Document(map[string]string{"run": done})
	} else {
		a.Print("%s", done)
		if r, err := s.Run(ctx, done); err == nil && r.Phase == engine.RunPending && len(r.Waits) > 0 {
			a.Note("%s waits %s", done, clean(r.Waits[0].Text))
		}
	}
	if err != nil || !wait {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	r, err := awaitEnd(ctx, s, done)
	if errors.Is(context.Cause(ctx), errTimeout) {
		return &fault.Error{Cause: fmt.Sprintf("%s has not ended after %s: %s", done, o.timeout,
			render.FirstWait(r, a.Now(), render.WaitWords)),
			Advice: "`sluice status " + done + "` shows its state", Code: fault.ExitWaiting}
	}
	if errors.Is(err, context.Canceled) {
		return &fault.Error{Cause: "interrupted: " + done + " goes on",
			Advice: "`sluice status " + done + "` shows its state",
			Code:   fault.ExitInterrupted, Err: err}
	}
	if err != nil {
		return err
	}
	return endOf(r)
}

var errTimeout = errors.New("--timeout ran out")

// launchRun starts the run, and returns its id and the record of its start.
func launchRun(ctx context.Context, s workspace.Service, ev engine.RunRequested) (id string, from int64, err error) {
	done, err := s.Do(ctx, ev, "command")
	if err != nil {
		return "", 0, err
	}
	if done.Ignored != "" || done.Run == "" {
		return "", 0, fault.Failed("`sluice ls` lists the runs", "no run was started: %s",
			cmp.Or(done.Ignored, "the service gave no reason"))
	}
	return done.Run, done.Seq, nil
}

// requestOf returns the event that asks for the ordered run.
func requestOf(ctx context.Context, a *app, p *workspace.Workspace, o order) (engine.RunRequested, error) {
	script := o.stub
	if script != "" && script != workflows.UsualScript {
		script = a.below(script)
	}
	wanted := workflows.Wanted{Workflow: o.workflow, Vars: o.vars, Script: script, Parallel: o.parallel}
	return workflows.Request(ctx, &a.Console, p, wanted)
}

// awaitEnd waits until the run has ended or ctx ends, and returns the run's state.
func awaitEnd(ctx context.Context, s workspace.Service, run string) (daemon.RunStatus, error) {
	var r daemon.RunStatus
	for {
		now, err := s.Run(ctx, run)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			return r, err
		}
		if r = now; !r.Live() {
			return r, nil
		}
		if !health.Wait(ctx, lookPace) {
			return r, ctx.Err()
		}
	}
}

// lookPace is how often a run's state is read.
const lookPace = 250 * time.Millisecond

func endOf(r daemon.RunStatus) error {
	switch r.Phase {
	case engine.RunFailed:
		return fault.Exit(fault.ExitFailed)
	case engine.RunAborted:
		return fault.Exit(fault.ExitAborted)
	}
	return nil
}
