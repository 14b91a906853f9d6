package work

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// on returns the labels of the workers that do the step; none: this machine does.
func (k *Work) on(j job.Job, st *engine.Step) []string {
	if len(j.RunInfo.Stubs) > 0 {
		return nil
	}
	return k.Launches.Far.On(st)
}

// workOrder is what the work of an attempt starts from.
func workOrder(j job.Job, st *engine.Step, b tree.Begin) tree.Order {
	return tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N, Base: b.Head}
}

// folder is where an attempt works.
func (k *Work) folder(b tree.Begin) tree.Folder {
	return tree.Folder{Repo: k.Git, Top: b.Top, Own: k.Folders.OwnPaths(b)}
}

// send returns what has a worker start the step's agent, or its command.
func (k *Work) send(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, a launch.Ask,
	works bool) (launch.Process, error) {
	s := launch.Sent{Step: st.ID, N: j.Attempt.N, Works: works, Head: b.Head}
	switch {
	case b.Look != "":
		s.Head, s.Start = b.Look, b.Look
	case !job.InOwn(j) || b.Head == "":
		return launch.Process{}, job.Fatal("it works on a worker (`on` of the step, or of its role's settings), and only a " +
			"run with a worktree of its own can: set workflow.workspace to run, or remove `on`")
	default:
		var err error
		if s.Start, err = k.folder(b).Start(ctx, workOrder(j, st, b)); err != nil {
			return launch.Process{}, err
		}
	}
	if st.Signal.Type != engine.SignalExit && st.Signal.Type != engine.SignalFile {
		return launch.Process{}, job.Fatal("it works on a worker (`on` of its role's settings), where a commit or a pull " +
			"request is not seen before the step's end: use another signal")
	}
	if f := k.SignalFile(j.Run, st); f != "" && a.Try == 0 {
		s.Signal = filepath.Base(f)
	}
	return k.Launches.Far.Agent(a, s)
}

// returned brings the work of a worker's launch into the attempt's folder. Then it is as if the
// agent had worked there. After an error the launch is lost; if its signal counts all the same, the
// work of the attempt is refused. So it is where its worker is lost with the work, which leaves no mark.
func (k *Work) returned(ctx context.Context, j job.Job, st *engine.Step, end launch.Ended) error {
	back := end.Back
	if back == nil || back.Commit == "" && back.Refused == "" {
		return nil
	}
	b, err := k.Folders.BegunAgain(ctx, j, st)
	if err != nil {
		return err
	}
	o := workOrder(j, st, b)
	if err = elsewhere(back, o); err == nil {
		err = k.bring(ctx, j, b, o, back)
	}
	if err != nil && ctx.Err() == nil {
		no := tree.Received{Tip: o.Base, Refused: "its worker's work could not be brought here: " + err.Error()}
		err = errors.Join(err, tree.KeepReceived(k.Layout, j.Key, tree.Private{Order: o}, no))
	}
	return err
}

// elsewhere returns an error for work of a launch that another machine has sent from a commit that the
// attempt does not begin from here: it would bring what that machine's branch had.
func elsewhere(back *launch.Back, o tree.Order) error {
	if back.Head == "" || back.Head == o.Base {
		return nil
	}
	return fmt.Errorf("it began from %.12s on the machine that decided before, and the attempt begins from %.12s here",
		back.Head, o.Base)
}

func (k *Work) bring(ctx context.Context, j job.Job, b tree.Begin, o tree.Order, back *launch.Back) error {
	return k.Persist(ctx, j.Key, func() error {
		r := tree.Received{Tip: o.Base, Refused: back.Refused}
		if back.Refused == "" {
			pack, err := k.Launches.Far.Stored(ctx, back.Pack)
			if err != nil {
				return err
			}
			defer pack.Close()
			err = k.Folders.Alone(func() (err error) {
				r, err = k.folder(b).Return(ctx, o, tree.Returned{Commit: back.Commit, Tip: back.Tip}, pack)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := tree.KeepReceived(k.Layout, j.Key, tree.Private{Order: o}, r); err != nil {
			return err
		}
		return layout.Save(k.PIDFile(j.Key)+layout.BackMark, true)
	})
}

// stopped ends everything under the job's key; main is how its own launch ended.
func (k *Work) stopped(ctx context.Context, j job.Job, st *engine.Step) (main *engine.Exit, some bool, err error) {
	l := launch.Order{Key: j.Key, Dir: k.JobDir(j), Found: j.Found}
	if st != nil {
		l.On = k.on(j, st)
	}
	end, some, err := k.Launches.Far.End(ctx, l)
	if err != nil || some {
		if end == nil {
			return nil, some, err
		}
		if st != nil {
			if err := k.returned(ctx, j, st, *end); err != nil {
				k.Logf("%s: the work of its worker cannot be taken: %v", j.Key, err)
			}
		}
		return &end.Exit, true, ctx.Err()
	}
	return k.Launches.StopAll(ctx, j.Key)
}
