package executor

import (
	"context"
	"path/filepath"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
)

// stop ends all that was started under the job's key. What had ended by itself keeps its end.
func (e *Executor) stop(ctx context.Context, j job.Job) engine.Event {
	ev := engine.ProcessEnded{Run: j.Run, Key: j.Key, Day: launch.DayOf(e.opt.Now()), Exit: engine.Exit{Code: -1, Lost: true}}
	for pause := health.AgainFirst; ; pause = min(2*pause, health.AgainMost) {
		main, some, err := e.StopAll(ctx, j.Key)
		if err == nil {
			e.Note(j.Key, "")
			switch {
			case main != nil:
				ev.Exit = e.ExitOf(*main, j.Key)
			case some:
				ev.Exit = engine.Exit{Code: -1, Stopped: true}
			}
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		e.Note(j.Key, err.Error())
		if !health.Wait(ctx, pause) {
			return nil
		}
	}
	if p := j.Proc; p != nil && p.Kind == engine.ProcStep && j.Attempt != nil && j.Spec != nil && j.Spec.Step(p.Step) != nil {
		end := e.Told(j.Key, launch.Ended{Exit: ev.Exit, Dir: filepath.Join(e.Root, filepath.FromSlash(e.JobDir(j)))})
		ev.Exit.Usage = end.Exit.Usage
		defer e.Salvage(ctx, j, j.Spec.Step(p.Step))
		defer e.Receive(ctx, j)
		if answer, err := e.answer(j, j.Spec.Step(p.Step), e.JobDir(j), j.Key, end); err == nil {
			ev.Answer = answer
		}
		if j.Why == "timeout" || !ev.Exit.Stopped {
			ev.Output = end.Output()
		}
	} else if p != nil && p.Kind == engine.ProcReview && j.Round != nil {
		ev.Exit.Usage = e.Told(j.Key, launch.Ended{Exit: ev.Exit, Dir: filepath.Join(e.Root, filepath.FromSlash(e.JobDir(j)))}).Exit.Usage
	}
	e.LeaveTalk(j.Key, nil, program.Usage{}, false) // where it was not told what came of it
	return ev
}
