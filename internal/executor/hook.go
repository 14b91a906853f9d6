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
func (e *Executor) hook(ctx context.Context, j job.Job) *engine.ProcessEnded {
	command, rel := j.Spec.AfterRun, e.JobDir(j)
	if j.Proc.Step != "" {
		command, rel = j.Spec.AfterStep, e.LaunchDir(j.Run, j.Proc.Step, j.Attempt.N, 1)+"/hook"
	}
	if command == nil {
		return &engine.ProcessEnded{}
	}
	end, err := e.ensure(ctx, order{key: j.Key, dir: rel}, func() (process, error) {
		env := j.Env
		if env == nil {
			env = &engine.Env{Run: j.Run, Workflow: j.RunInfo.Workflow, Vars: j.Vars}
		}
		argv, err := e.command(j, command, env, rel, stub.Turn{}, nil, tree.Begin{})
		if err != nil {
			return process{}, err
		}
		p, vars := process{cwd: e.Home(j), argv: argv}, map[string]string{"SLUICE_STATUS": j.RunInfo.Phase, "SLUICE_UNPASSED": strconv.Itoa(j.RunInfo.Unpassed)}
		if j.RunInfo.TaskStatus != "" {
			vars["SLUICE_TASK_STATUS"] = j.RunInfo.TaskStatus
		}
		var w who
		if j.Proc.Step != "" {
			st := j.Spec.Step(j.Proc.Step)
			b, err := e.Begun(ctx, j, st, j.Attempt.N)
			if err != nil {
				return process{}, err
			}
			commit, _ := takenOf(j)
			if b.Look != "" {
				commit = b.Look // nothing else is to be taken
			}
			if p.judged, err = e.judgeAt(ctx, j, b, commit, j.Key); err != nil {
				return process{}, err
			}
			w, vars, p.cwd = e.whose(st.Role(), j.Turn), job.StepVars(j, st), p.judged.host
			p.who = w
			if p.work, err = e.hookWork(ctx, j, st, p.judged); err != nil {
				return process{}, err
			}
			vars["SLUICE_STATUS"] = j.Attempt.Status
		}
		p.env, err = e.environ(j, w, j.Key, nil, vars)
		return p, err
	})
	if err != nil {
		return nil
	}
	if j.Proc.Step != "" {
		e.receive(ctx, j)
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
func (e *Executor) hookWork(ctx context.Context, j job.Job, st *engine.Step, seen judged) (*tree.Order, error) {
	if seen.seat != nil || seen.agents.Top == "" {
		return nil, nil
	}
	o := tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N}
	if j.RunInfo.Workspace == "" {
		return &o, nil // from HEAD: the branch has what the agent committed
	}
	head, err := e.opt.Git.Head(ctx, seen.agents.Top)
	if err != nil {
		return nil, err
	}
	var no *tree.Refused
	if o.Base, err = e.Tip(o, head); errors.As(err, &no) {
		return nil, nil
	}
	return &o, err
}
