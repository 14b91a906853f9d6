package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/stub"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs"
)

// order is what run and start are asked to do.
type order struct {
	workflow string
	vars     []string
	set      []string
	parallel bool
	stub     string // where the run's stand-ins are scripted; theUsual = where the workflow's lie, "" = it is a real run
	timeout  time.Duration

	before func(context.Context) error // what has to hold for a new run; nil = nothing. A live one goes on without
}

// theUsual is what --stub without a file means.
const theUsual = "the usual"

func (o *order) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.vars, "var", nil, "a value of the workflow: `NAME=VALUE`; may be given several times")
	cmd.Flags().BoolVar(&o.parallel, "parallel", false, "beside a live run of the same workflow, not after it")
	cmd.Flags().StringVar(&o.stub, "stub", "", "scripted stand-ins play the agents: no model, no key; as `FILE` says, else "+specs.StubsDir+"/WORKFLOW.yaml")
	cmd.Flags().Lookup("stub").NoOptDefVal = theUsual
}

// ofNewRuns refuses what a run has from its start on, where one that is there is to be gone on with.
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
	return fault.Misused("name the workflow to start another run of it", "%s is of a run that starts, and %s has been: it goes on as it was started", flag, run)
}

func startCommand(a *app) *cobra.Command {
	var o order
	var wait bool
	cmd := &cobra.Command{
		Use:   "start WORKFLOW",
		Short: "have the daemon start a run, and print its id",
		Long: `The run goes on in the background. With --wait the command comes back when it has ended, with
run's exit codes; --timeout bounds the waiting, and exit code 4 says that it ran out.`,
		Example: "sluice start gated-pipeline --var task=\"an index\"\nsluice start phase-4 --var goal=\"faster search\" --wait --timeout 2h",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.workflow = args[0]
			return startRun(cmd.Context(), a, o, wait || o.timeout > 0)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "come back when the run has ended")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait: at the latest after this `TIME`, as 30m")
	return a.JSONFlag(cmd)
}

func startRun(ctx context.Context, a *app, o order, wait bool) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	ev, err := requestOf(a, p, o)
	if err != nil {
		return err
	}
	s, err := workspace.Serving(ctx, p)
	if err != nil {
		return err
	}
	if s == nil {
		return fault.Failed("`sluice run "+o.workflow+"` runs it in the foreground; `sluice watch add` and `sluice daemon` serve it in the background", "no daemon serves %s now", p.Root)
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
		return &fault.Error{Cause: fmt.Sprintf("%s has not ended after %s: %s", done, o.timeout, render.FirstWait(r, a.Now())), Advice: "`sluice status " + done + "` tells how it stands", Code: fault.ExitWaiting}
	}
	if err != nil {
		return err
	}
	return endOf(r)
}

var errTimeout = errors.New("--timeout ran out")

// launchRun has the run started; it gives its id and the record of its start.
func launchRun(ctx context.Context, s workspace.Service, ev engine.RunRequested) (id string, from int64, err error) {
	done, err := s.Do(ctx, ev, "command")
	if err != nil {
		return "", 0, err
	}
	if done.Ignored != "" || done.Run == "" {
		return "", 0, fault.Failed("`sluice ls` lists the runs", "no run was started: %s", cmp.Or(done.Ignored, "the service did not say why"))
	}
	return done.Run, done.Seq, nil
}

// requestOf reads the spec and makes the event that asks for a run of it.
func requestOf(a *app, p *workspace.Workspace, o order) (engine.RunRequested, error) {
	var ev engine.RunRequested
	file, err := workflows.File(p, o.workflow)
	if err != nil {
		return ev, err
	}
	spec, err := workflows.Load(&a.Console, file)
	if err != nil {
		return ev, err
	}
	given := map[string]string{}
	for _, v := range o.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return ev, fault.Misused("as --var goal=\"faster search\"", "--var %s: want NAME=VALUE", clean(v))
		}
		given[name] = value
	}
	vars, faults := specs.Vars(spec, given)
	if len(faults) > 0 {
		mend := "the spec's vars are in " + layout.ShortPath(file)
		if len(faults) == 1 {
			return ev, &fault.Error{Cause: faults[0].Error(), Advice: mend, Code: fault.ExitUsage}
		}
		for _, err := range faults { // a var that is missing is often one that is misspelt: both are told
			a.Note("%s", oneLine(err.Error()))
		}
		return ev, &fault.Error{Cause: "--var: " + plural(len(faults), "fault"), Advice: mend, Code: fault.ExitUsage}
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return ev, err
	}
	pinned, bad := specs.Pin(p.Root, file, src, vars)
	if len(bad) > 0 {
		return ev, fault.Failed("mend the spec; `sluice validate` checks it again", "%s%s", bad[0], text.More(len(bad)-1, "fault"))
	}
	ev = engine.RunRequested{Workflow: spec.ID, Source: string(pinned), File: specs.Digest(src), Vars: vars, Parallel: o.parallel}
	if o.stub != "" {
		ev.Stubs, err = scriptOf(a, p, o.stub, spec)
	}
	return ev, err
}

// scriptOf reads what stands in for the agents of a workflow: the file that was named, else the workflow's own, where there is
// one; else each role does the least that lets work go on.
func scriptOf(a *app, p *workspace.Workspace, file string, spec *engine.Spec) ([]byte, error) {
	usual := filepath.Join(p.Root, filepath.FromSlash(specs.StubsDir), spec.ID+".yaml")
	script := &stub.Script{}
	switch {
	case file != theUsual:
		if file = a.below(file); !layout.IsFile(file) {
			return nil, fault.Misused("--stub alone takes "+specs.StubsDir+"/"+spec.ID+".yaml, where there is one", "--stub=%s: no such file", clean(layout.ShortPath(file)))
		}
	default:
		if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
			usual = ""
		}
		file = usual
	}
	if file != "" {
		var faults []specs.Fault
		if script, faults = specs.LoadStubs(file, spec); len(faults) > 0 {
			for _, f := range faults {
				fmt.Fprintf(a.Err, "%s:%d:%d: %s\n", layout.ShortPath(f.File), f.Line, f.Col, clean(f.Message))
			}
			return nil, fault.Failed("mend the script of the stand-ins: docs/stubs.md says what may stand there", "%s: %s", layout.ShortPath(file), plural(len(faults), "fault"))
		}
		script.From = layout.ShortPath(file)
	}
	return json.Marshal(script)
}

// awaitEnd waits until the run has ended and gives how it stands then, or when ctx ends.
func awaitEnd(ctx context.Context, s workspace.Service, run string) (daemon.RunStatus, error) {
	tick := time.NewTicker(lookPace)
	defer tick.Stop()
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
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-tick.C:
		}
	}
}

// lookPace is how often one looks how a run stands.
const lookPace = 250 * time.Millisecond

// endOf is the exit code of a run that has ended.
func endOf(r daemon.RunStatus) error {
	switch r.Phase {
	case engine.RunFailed:
		return fault.Exit(fault.ExitFailed)
	case engine.RunAborted:
		return fault.Exit(fault.ExitAborted)
	}
	return nil
}
