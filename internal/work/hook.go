package work

import (
	"context"
	"errors"
	"strconv"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates/judge"
	"sluice/internal/job"
	"sluice/internal/stub"
	"sluice/internal/tree"
)

// Hook runs a hook: after a step in its worktree, after the run in the root. A failure only shows
// in its exit.
func (k *Work) Hook(ctx context.Context, j job.Job) *engine.ProcessEnded {
	command, rel := j.Spec.AfterRun, k.JobDir(j)
	if j.Proc.Step != "" {
		command, rel = j.Spec.AfterStep, k.LaunchDir(j.Run, j.Proc.Step, j.Attempt.N, 1)+"/hook"
	}
	if command == nil {
		return &engine.ProcessEnded{}
	}
	end, err := k.Launches.Ensure(ctx, launch.Order{Key: j.Key, Dir: rel}, func() (launch.Process, error) {
		env := j.Env
		if env == nil {
			env = &engine.Env{Run: j.Run, Workflow: j.RunInfo.Workflow, Vars: j.Vars}
		}
		argv, err := k.Launches.Command(j, command, env, rel, stub.Turn{}, "")
		if err != nil {
			return launch.Process{}, err
		}
		p, vars := launch.Process{Cwd: k.Folders.Home(j), Argv: argv},
			map[string]string{"SLUICE_STATUS": j.RunInfo.Phase, "SLUICE_UNPASSED": strconv.Itoa(j.RunInfo.Unpassed)}
		if j.RunInfo.TaskStatus != "" {
			vars["SLUICE_TASK_STATUS"] = j.RunInfo.TaskStatus
		}
		var w launch.Who
		if j.Proc.Step != "" {
			st := j.Spec.Step(j.Proc.Step)
			b, err := k.Folders.Begun(ctx, j, st, j.Attempt.N)
			if err != nil {
				return launch.Process{}, err
			}
			commit, _ := judge.TakenOf(j)
			if b.Look != "" {
				commit = b.Look // nothing else will be taken
			}
			if p.Judged, err = k.Judges.JudgeAt(ctx, j, b, commit, j.Key); err != nil {
				return launch.Process{}, err
			}
			w, vars, p.Cwd = k.Launches.Whose(st.Role(), j.Turn), job.StepVars(j, st), p.Judged.Host
			p.Who = w
			if p.Work, err = k.hookWork(ctx, j, st, p.Judged); err != nil {
				return launch.Process{}, err
			}
			vars["SLUICE_STATUS"] = j.Attempt.Status
		}
		p.Env, err = k.Launches.Environ(j, w, j.Key, nil, vars)
		return p, err
	})
	if err != nil {
		return nil
	}
	if j.Proc.Step != "" {
		k.Launches.Receive(ctx, j)
	}
	ev := &engine.ProcessEnded{Exit: end.Exit}
	// A hook that cannot be started is recorded; it stops nothing.
	ev.Exit.Class, ev.Exit.Why = "", ""
	if !end.Clean() {
		ev.Output = end.Output()
	}
	return ev
}

// hookWork returns the order of an after_step hook's commits: that of its attempt, on top of the
// agent's commits. A hook that judges has none.
func (k *Work) hookWork(ctx context.Context, j job.Job, st *engine.Step, seen launch.Judged) (*tree.Order, error) {
	if seen.Seat != nil || seen.Agents.Top == "" {
		return nil, nil
	}
	o := tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N}
	if j.RunInfo.Workspace == "" {
		return &o, nil // from HEAD: the branch has the agent's commits
	}
	head, err := k.Git.Head(ctx, seen.Agents.Top)
	if err != nil {
		return nil, err
	}
	var no *tree.Refused
	if o.Base, err = k.Folders.Tip(o, head); errors.As(err, &no) {
		return nil, nil
	}
	return &o, err
}
