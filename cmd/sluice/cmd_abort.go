package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/serve"
	"sluice/internal/workspace"
)

func abortCommand(a *app) *cobra.Command {
	var why string
	cmd := a.JSONFlag(&cobra.Command{
		Use: "abort [RUN]", Short: "end a run and its agents for good",
		Long: `Ends the run's agents with every process they started. Worktrees stay as they are.
Where no process serves the repo, this command does so until the run has ended; it launches
nothing, and other runs wait. The workflow's after_run hook, if it has one, still runs.`,
		Example: "sluice abort phase-4-1 -m \"wrong plan\"\nsluice abort --yes", Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return abortRun(cmd.Context(), a, args, why) },
	})
	cmd.Flags().StringVarP(&why, "message", "m", "", "the reason, in `WORDS`")
	return cmd
}

// abortRun ends a run through the process that serves the repo or, if there is none or it ends just
// then, through this one.
func abortRun(ctx context.Context, a *app, args []string, why string) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	id, err := toAbort(ctx, p, args)
	if err != nil {
		return err
	}
	if yes, err := a.Ask("End " + id + " for good?"); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	ev := engine.AbortRequested{Run: id, Why: why}
	s, err := p.Serving(ctx)
	if err != nil {
		return err
	}
	if s != nil {
		done, err := ask(ctx, s, id, ev)
		s.Close()
		if !errors.Is(err, daemon.ErrStopped) && !errors.Is(err, daemon.ErrNotServed) {
			return tellSteered(&a.Console, done, err)
		}
	}
	return abortHere(ctx, a, p, ev)
}

// toAbort returns the id of the run, before anything is asked or served.
func toAbort(ctx context.Context, p *workspace.Workspace, args []string) (string, error) {
	v, _, err := p.View(ctx)
	if err != nil {
		return "", err
	}
	defer v.Close()
	id, err := workspace.RunMeant(ctx, v, args)
	if err != nil {
		return "", err
	}
	r, err := v.Run(ctx, id)
	if err == nil && !r.Live() {
		err = fault.Failed("`sluice status "+id+"` shows its state", "nothing was done: run %s is over (%s)", id, r.Phase)
	}
	return id, err
}

// abortHere ends a run from this process, which serves the repo until all of it has ended and
// launches nothing.
func abortHere(ctx context.Context, a *app, p *workspace.Workspace, ev engine.AbortRequested) error {
	h, err := serve.InFront(ctx, a.serving(nil), p, true)
	if err != nil {
		return err
	}
	s := p.Client()
	defer s.Close()
	done, err := ask(ctx, s, ev.Run, ev)
	if err = tellSteered(&a.Console, done, err); err == nil {
		err = h.Quiet(ctx, ev.Run)
	}
	if err == nil {
		h.Settle(s)
	}
	if stopped := h.Stop(); err == nil {
		err = stopped
	}
	return err
}
