package executor

import (
	"context"
	"strconv"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/stub"
)

// hook carries out a hook: after a step in its worktree, after the run in the root. Its failure is its exit only.
func (e *Executor) hook(ctx context.Context, job daemon.Job) *engine.ProcessEnded {
	command, rel := job.Spec.AfterRun, e.inRun(job)
	if job.Proc.Step != "" {
		command, rel = job.Spec.AfterStep, e.launchDir(job.Run, job.Proc.Step, job.Attempt.N, 1)+"/hook"
	}
	if command == nil {
		return &engine.ProcessEnded{}
	}
	end, err := e.ensure(ctx, launch{key: job.Key, dir: rel}, func() (process, error) {
		env := job.Env
		if env == nil {
			env = &engine.Env{Run: job.Run, Workflow: job.RunInfo.Workflow, Vars: job.Vars}
		}
		argv, err := e.command(job, command, env, rel, stub.Turn{}, nil, begin{})
		if err != nil {
			return process{}, err
		}
		p, vars := process{cwd: e.home(job), argv: argv}, map[string]string{"SLUICE_STATUS": job.RunInfo.Phase, "SLUICE_UNPASSED": strconv.Itoa(job.RunInfo.Unpassed)}
		var w who
		if job.Proc.Step != "" {
			st := job.Spec.Step(job.Proc.Step)
			b, err := e.begun(ctx, job, st, job.Attempt.N)
			if err != nil {
				return process{}, err
			}
			commit, _ := takenOf(job)
			if p.judged, err = e.judgeAt(ctx, b, commit, job.Key); err != nil {
				return process{}, err
			}
			w, vars, p.cwd = e.whose(st.Role(), job.Turn), stepVars(job, st), p.judged.host
			p.who = w
			vars["SLUICE_STATUS"] = job.Attempt.Status
		}
		p.env, err = e.environ(job, w, job.Key, nil, vars)
		return p, err
	})
	if err != nil {
		return nil
	}
	ev := &engine.ProcessEnded{Exit: end.exit}
	// A hook that cannot be started is recorded; it stops nothing.
	ev.Exit.Class, ev.Exit.Why = "", ""
	if !end.clean() {
		ev.Output = end.output()
	}
	return ev
}
