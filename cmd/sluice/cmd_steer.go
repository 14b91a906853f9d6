package main

import (
	"context"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

func pauseCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "pause [RUN]", Short: "pause a run: start nothing new until it is resumed",
		Long: `Running agents finish and their signals are taken in. Nothing new starts, and veto windows stop.
A run whose last gate is passed meanwhile completes. Without RUN it pauses the only live run.`,
		Example: "sluice pause\nsluice pause phase-4-1", Args: console.Between(0, 1),
		RunE: steer(a, func(run string, _ []string) engine.Event { return engine.PauseRequested{Run: run} }),
	})
}

func resumeCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "resume [RUN]", Short: "continue a paused run",
		Long: "If a limit paused the run, the same amount is granted again. A process must serve the repo: without\na " +
			"daemon, `sluice run RUN` continues the run in the foreground.",
		Example: "sluice resume\nsluice resume phase-4-1", Args: console.Between(0, 1),
		RunE: steer(a, func(run string, _ []string) engine.Event { return engine.ResumeRequested{Run: run} }),
	})
}

func retryCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "retry RUN [STEP]", Short: "run a step again, or continue an ended run",
		Long: `Starts a new attempt of STEP and undoes what follows it. Without STEP it takes the step at which
the run ended or stopped. It counts against no gate. Where no daemon serves the repo, this process
does until the run has ended, like ` + "`sluice run`" + `.`,
		Example: "sluice retry phase-4-1\nsluice retry phase-4-1 code", Args: console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			event := func(run string, args []string) engine.Event {
				return engine.RetryRequested{Run: run, Step: arg(args, 1)}
			}
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			s, err := p.Serving(cmd.Context())
			if err != nil {
				return err
			}
			if s == nil && !a.JSON { // a program wants an answer, not a run to look at
				return retryHere(cmd.Context(), a, p, args, event)
			}
			if s != nil {
				s.Close()
			}
			return steer(a, event)(cmd, args)
		},
	})
}

// retryHere retries a run, and follows it from this process.
func retryHere(ctx context.Context, a *app, p *workspace.Workspace, args []string,
	event func(run string, args []string) engine.Event) error {
	r, err := p.StatusOf(ctx, args[0]) // before serving, for a wrong name
	if err != nil {
		return err
	}
	return inFront(ctx, a, p, nil, func(s workspace.Service) (string, int64, error) {
		if err := s.Reload(ctx); err != nil { // the settings may have been fixed
			return "", 0, err
		}
		done, err := ask(ctx, s, r.ID, event(r.ID, args))
		return r.ID, done.Seq, err
	})
}

// steer returns the RunE of a command that asks for one event about a run.
func steer(a *app, event func(run string, args []string) engine.Event) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return onRun(cmd.Context(), a, args,
			func(ctx context.Context, _ *workspace.Workspace, s workspace.Service, id string) error {
				done, err := ask(ctx, s, id, event(id, args))
				return tellSteered(&a.Console, done, err)
			})
	}
}

// onRun calls do for the first named run, or the only live one, with the process that serves it.
func onRun(ctx context.Context, a *app, named []string,
	do func(ctx context.Context, p *workspace.Workspace, s workspace.Service, run string) error) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	s, err := p.Serving(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return p.UnservedRun(ctx, named)
	}
	defer s.Close()
	id, err := workspace.RunMeant(ctx, s, named)
	if err != nil {
		return err
	}
	return do(ctx, p, s, id)
}

// notDone returns exit code 1 if the person said no.
func notDone(err error) error {
	if err != nil {
		return nil
	}
	return fault.Exit(fault.ExitFailed)
}

// ask sends an event about a run to the process that serves it. An ignored one is an error.
func ask(ctx context.Context, s workspace.Service, run string, ev engine.Event) (daemon.Done, error) {
	done, err := workspace.Do(ctx, s, ev, "command")
	if err == nil && done.Ignored != "" {
		err = fault.Failed("`sluice status "+run+"` shows its state", "nothing was done: %s", done.Ignored)
	}
	return done, err
}

// tellSteered prints what ask has brought about.
func tellSteered(con *console.Console, done daemon.Done, err error) error {
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(done)
	}
	con.PrintLines(render.Said(con, done.Facts))
	return nil
}
