package work

import (
	"context"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/job"
)

// Stop ends everything started under the job's key. What had ended by itself keeps its end.
func (k *Work) Stop(ctx context.Context, j job.Job) engine.Event {
	ev := engine.ProcessEnded{Run: j.Run, Key: j.Key, Day: launch.DayOf(k.Now()),
		Exit: engine.Exit{Code: -1, Lost: true}}
	if j.Proc.Forge { // nothing runs here
		ev.Exit = engine.Exit{Code: -1, Stopped: true}
		return ev
	}
	var st *engine.Step
	if p := j.Proc; p.Kind == engine.ProcStep && j.Attempt != nil && j.Spec != nil {
		st = j.Spec.Step(p.Step)
	}
	var main *engine.Exit
	var some bool
	if !k.Retry(ctx, j.Key, func() (err error) {
		main, some, err = k.stopped(ctx, j, st)
		return err
	}) {
		return nil
	}
	switch {
	case main != nil:
		ev.Exit = *main
	case some:
		ev.Exit = engine.Exit{Code: -1, Stopped: true}
	}
	end := launch.Ended{Exit: ev.Exit, Dir: k.Path(k.JobDir(j))}
	if st != nil {
		end = k.Launches.Told(j.Key, end)
		ev.Exit.Usage = end.Exit.Usage
		defer k.Folders.Salvage(ctx, j, st)
		defer k.Launches.Receive(ctx, j)
		if answer, err := k.answer(j, st, launch.Turn{Key: j.Key, Dir: k.JobDir(j)}, end); err == nil {
			ev.Answer = answer
		}
		if j.Why == "timeout" || !ev.Exit.Stopped {
			ev.Output = end.Output()
		}
	} else if j.Proc.Kind == engine.ProcReview && j.Round != nil {
		ev.Exit.Usage = k.Launches.Told(j.Key, end).Exit.Usage
	}
	k.Launches.LeaveTalk(j.Key) // if its result was not read
	return ev
}
