package executor

import (
	"context"
	"errors"
	"strconv"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/stub"
	"sluice/internal/tree"
)

// hook carries out a hook: after a step in its worktree, after the run in the root. Its failure is its exit only.
func (e *Executor) hook(ctx context.Context, job job.Job) *engine.ProcessEnded {
	command, rel := job.Spec.AfterRun, e.JobDir(job)
	if job.Proc.Step != "" {
		command, rel = job.Spec.AfterStep, e.LaunchDir(job.Run, job.Proc.Step, job.Attempt.N, 1)+"/hook"
	}
	if command == nil {
		return &engine.ProcessEnded{}
	}
	end, err := e.ensure(ctx, order{key: job.Key, dir: rel}, func() (process, error) {
		env := job.Env
		if env == nil {
			env = &engine.Env{Run: job.Run, Workflow: job.RunInfo.Workflow, Vars: job.Vars}
		}
		argv, err := e.command(job, command, env, rel, stub.Turn{}, nil, begin{})
		if err != nil {
			return process{}, err
		}
		p, vars := process{cwd: e.home(job), argv: argv}, map[string]string{"SLUICE_STATUS": job.RunInfo.Phase, "SLUICE_UNPASSED": strconv.Itoa(job.RunInfo.Unpassed)}
		if job.RunInfo.TaskStatus != "" {
			vars["SLUICE_TASK_STATUS"] = job.RunInfo.TaskStatus
		}
		var w who
		if job.Proc.Step != "" {
			st := job.Spec.Step(job.Proc.Step)
			b, err := e.begun(ctx, job, st, job.Attempt.N)
			if err != nil {
				return process{}, err
			}
			commit, _ := takenOf(job)
			if b.Look != "" {
				commit = b.Look // nothing else is to be taken
			}
			if p.judged, err = e.judgeAt(ctx, job, b, commit, job.Key); err != nil {
				return process{}, err
			}
			w, vars, p.cwd = e.whose(st.Role(), job.Turn), stepVars(job, st), p.judged.host
			p.who = w
			if p.work, err = e.hookWork(ctx, job, st, p.judged); err != nil {
				return process{}, err
			}
			vars["SLUICE_STATUS"] = job.Attempt.Status
		}
		p.env, err = e.environ(job, w, job.Key, nil, vars)
		return p, err
	})
	if err != nil {
		return nil
	}
	if job.Proc.Step != "" {
		e.receive(ctx, job)
	}
	ev := &engine.ProcessEnded{Exit: end.exit}
	// A hook that cannot be started is recorded; it stops nothing.
	ev.Exit.Class, ev.Exit.Why = "", ""
	if !end.clean() {
		ev.Output = end.output()
	}
	return ev
}

// hookWork says whose work the commits of an after_step hook are: those of the attempt that it follows, on top of what the
// agent committed. A hook that judges makes none.
func (e *Executor) hookWork(ctx context.Context, job job.Job, st *engine.Step, j judged) (*tree.Order, error) {
	if j.seat != nil || j.agents.Top == "" {
		return nil, nil
	}
	o := tree.Order{Run: job.Run, Step: st.ID, N: job.Attempt.N}
	if job.RunInfo.Workspace == "" {
		return &o, nil // from HEAD: the branch has what the agent committed
	}
	head, err := e.opt.Git.Head(ctx, j.agents.Top)
	if err != nil {
		return nil, err
	}
	var no *tree.Refused
	if o.Base, err = e.tip(o, head); errors.As(err, &no) {
		return nil, nil
	}
	return &o, err
}
