package executor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
)

// stop ends all that was started under the job's key. What had ended by itself keeps its end.
func (e *Executor) stop(ctx context.Context, j job.Job) engine.Event {
	ev := engine.ProcessEnded{Run: j.Run, Key: j.Key, Day: dayOf(e.opt.Now()), Exit: engine.Exit{Code: -1, Lost: true}}
	for pause := health.AgainFirst; ; pause = min(2*pause, health.AgainMost) {
		main, some, err := e.stopAll(ctx, j.Key)
		if err == nil {
			e.Note(j.Key, "")
			switch {
			case main != nil:
				ev.Exit = e.exitOf(*main, j.Key)
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
		end := e.told(j.Key, ended{exit: ev.Exit, dir: filepath.Join(e.Root, filepath.FromSlash(e.JobDir(j)))})
		ev.Exit.Usage = end.exit.Usage
		defer e.Salvage(ctx, j, j.Spec.Step(p.Step))
		defer e.receive(ctx, j)
		if answer, err := e.answer(j, j.Spec.Step(p.Step), e.JobDir(j), j.Key, end); err == nil {
			ev.Answer = answer
		}
		if j.Why == "timeout" || !ev.Exit.Stopped {
			ev.Output = end.output()
		}
	} else if p != nil && p.Kind == engine.ProcReview && j.Round != nil {
		ev.Exit.Usage = e.told(j.Key, ended{exit: ev.Exit, dir: filepath.Join(e.Root, filepath.FromSlash(e.JobDir(j)))}).exit.Usage
	}
	e.leaveTalk(j.Key, nil, program.Usage{}, false) // where it was not told what came of it
	return ev
}

// stopAll ends every launch of a key: its own, those of its criteria and corrections. main is how its own ended.
func (e *Executor) stopAll(ctx context.Context, key string) (main *agents.Exit, some bool, err error) {
	own := e.PIDFile(key)
	// First this, then the look at what there is: a start that is on its way (of a daemon that was killed just now) is
	// either seen below or sees that it must not be.
	if err := e.opt.Runner.Forbid(own); err != nil {
		return nil, false, err
	}
	dir, name := filepath.Dir(own), strings.TrimSuffix(filepath.Base(own), ".pid")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	var faults []error
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), name)
		if !ok || !strings.HasSuffix(rest, ".pid") || rest != ".pid" && rest[0] != '+' && rest[0] != '=' {
			continue
		}
		proc, err := e.adopt(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, agents.ErrTorn) {
			if err := e.endTorn(ctx, key+strings.TrimSuffix(rest, ".pid")); err != nil {
				faults = append(faults, err)
			}
			continue
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		some = true
		if err := proc.Stop(ctx); err != nil {
			faults = append(faults, err)
			continue
		}
		exit, err := proc.Wait(ctx)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		e.vacate(filepath.Join(dir, entry.Name()))
		if rest == ".pid" {
			main = &exit
		}
	}
	return main, some, errors.Join(faults...)
}
