package main

import (
	"context"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/tui"
	"sluice/internal/tui/host"
	"sluice/internal/workspace"
)

// waits reports whether the person at this terminal can decide what is shown.
func waits(a *app, sh *show.Shown) bool {
	g := sh.Gate
	return a.Interactive() && !a.Plain && a.Getenv("TERM") != "dumb" && decide.InAttempt(&a.Console) == nil &&
		g != nil && (g.State == engine.OnHuman || g.State == engine.OnWindow)
}

// showOptions are the flags of `sluice show`.
type showOptions struct {
	run  string // "" = the newest that has the gate or step
	diff bool
	how  show.Diff
}

// changes reports whether the changes are asked for, not only the page.
func (o showOptions) changes() bool {
	return o.diff || o.how.Since || o.how.Words || len(o.how.Paths) > 0
}

func showCommand(a *app) *cobra.Command {
	o := showOptions{how: show.Diff{Most: show.MaxPatch}}
	cmd := &cobra.Command{
		Use:   "show [RUN] GATE|STEP [-- PATH...]",
		Short: "show what a decision needs: task, criterion, verdict, changes, rounds",
		Long: `Shows the work at a gate on one page: the task, the step's own summary, the machine's checks, the
reviewer's verdict, the changed files, the cost, and earlier failures. --diff shows the changes,
--since the changes since the attempt before; after -- name the files and folders that you want to
see. In a terminal they go through your pager (GIT_PAGER, core.pager of your own git settings, PAGER,
less). Without these flags, the page of a gate that waits for you opens on a screen in a terminal,
and a key decides: f and v ask for the reason, p asks for confirmation. A key decides only what has
been on screen for a second.`,
		Example: "sluice show approve\nsluice show last approve\nsluice show code --diff\n" +
			"sluice show code --diff --words -- search.py\nsluice show code --since",
		Args: showArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, o.how.Paths = cutPaths(cmd, args)
			args, err := ofRun(&o.run, args)
			if err != nil {
				return err
			}
			return showPage(cmd.Context(), a, args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.run, "run", "", "in this `RUN` (default: where it waits for you, else the newest)")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show the changes too")
	cmd.Flags().BoolVar(&o.how.Since, "since", false, "show the changes since the attempt before")
	cmd.Flags().BoolVar(&o.how.Words, "words", false, "show the changes with the changed words marked")
	return a.JSONFlag(cmd)
}

// showPage prints the page of a gate or step, or opens that of a gate which waits for this person.
func showPage(ctx context.Context, a *app, named string, o showOptions) error {
	var sh *show.Shown
	var screen *workspace.Workspace // nil = the page is printed
	err := a.withView(ctx, func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
		r, err := workspace.RunWith(ctx, v, o.run, named)
		if err != nil {
			return err
		}
		if sh, err = show.Gather(ctx, p, v, r, named); err != nil {
			return err
		}
		switch {
		case a.JSON:
			return a.Document(sh)
		case served && waits(a, sh) && !o.changes():
			screen = p
			return nil
		}
		show.Print(&a.Console, sh)
		if !o.changes() {
			return nil
		}
		return show.PrintDiff(ctx, &a.Console, p, sh, o.how)
	})
	if err != nil || screen == nil {
		return err
	}
	return onScreen(ctx, a, screen, sh)
}

// onScreen shows a gate's page on a screen, and what was decided there.
func onScreen(ctx context.Context, a *app, at *workspace.Workspace, sh *show.Shown) error {
	said, counts, err := tui.Show(ctx, host.At(&a.Console, at), sh.Run, sh.Gate.ID,
		tui.Options{In: a.In, Out: a.Out, Env: a.Env, Now: a.Now})
	switch {
	case err != nil || said == "":
		return err
	case !counts:
		return fault.Failed("`sluice show "+sh.Gate.ID+"` shows its state", "%s", said)
	}
	a.Print("%s", said)
	return nil
}

// showArgs checks the arguments before the --, behind which any number of paths may be.
func showArgs(cmd *cobra.Command, args []string) error {
	before, _ := cutPaths(cmd, args)
	return console.Between(1, 2)(cmd, before)
}

// cutPaths returns the arguments before the --, and the paths behind it.
func cutPaths(cmd *cobra.Command, args []string) (before, paths []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}
