package main

import (
	"context"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
	"sluice/internal/serve"
	"sluice/internal/workspace"
)

// app is the console and folder that every command has.
type app struct {
	console.Console // a copy of the app may write elsewhere
	dir             string

	throwAway bool                           // the repo is removed when the command ends
	ended     func(r daemon.RunStatus) error // takes the end of a run in the foreground; nil = it is printed
}

func newApp(env []string, in io.Reader, out, err io.Writer) *app {
	return &app{Console: *console.New(env, in, out, err)}
}

// place finds the repo of the command, which must have a `.workflow/`.
func (a *app) place(ctx context.Context) (*workspace.Workspace, error) {
	return workspace.Find(ctx, &a.Console, a.dir)
}

// bare finds the repo of the command, with or without `.workflow/`.
func (a *app) bare(ctx context.Context) (*workspace.Workspace, error) {
	return workspace.Bare(ctx, &a.Console, a.dir)
}

// inRepo returns the RunE of a command about a repo, which at finds: place, bare, or one that also checks who asks.
func inRepo(at func(context.Context) (*workspace.Workspace, error),
	do func(ctx context.Context, p *workspace.Workspace, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, err := at(cmd.Context())
		if err != nil {
			return err
		}
		return do(cmd.Context(), p, args)
	}
}

// answer prints a result of one line; with --json, the document.
func (a *app) answer(document any, line string) error {
	if a.JSON {
		return a.Document(document)
	}
	a.Print("%s", line)
	return nil
}

// serving returns how a process of this app serves repos.
func (a *app) serving(set []string) serve.Options {
	return serve.Options{Console: &a.Console, Set: set, Version: version}
}

// forPersons refuses the command in the environment of an attempt: only a person does this.
func (a *app) forPersons(does, advice string) error {
	if decide.InAttempt(&a.Console) == nil {
		return nil
	}
	return fault.Failed(advice, "only a person %s, and this is the environment of an attempt (%s)", does,
		clean(a.Getenv("SLUICE_RUN")))
}

// withView runs do with the repo and its Viewer.
func (a *app) withView(ctx context.Context,
	do func(p *workspace.Workspace, v workspace.Viewer, served bool) error) error {
	collectLate()
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	v, served, err := p.View(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	return do(p, v, served)
}

// collectLate is for commands that show something and end: they collect no garbage below 16 MiB.
func collectLate() { debug.SetGCPercent(400) }
