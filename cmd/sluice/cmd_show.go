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

func showCommand(a *app) *cobra.Command {
	var run string
	var diff bool
	how := show.Diff{Most: show.MaxPatch}
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
			args, how.Paths = cutPaths(cmd, args)
			changes := diff || how.Since || how.Words || len(how.Paths) > 0
			args, err := ofRun(&run, args)
			if err != nil {
				return err
			}
			var sh *show.Shown
			var at *workspace.Workspace
			live := false
			err = a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				r, err := workspace.RunWith(cmd.Context(), v, run, args[0])
				if err != nil {
					return err
				}
				if sh, err = show.Gather(cmd.Context(), p, v, r, args[0]); err != nil {
					return err
				}
				at = p
				switch {
				case a.JSON:
					return a.Document(sh)
				case served && waits(a, sh) && !changes:
					live = true
					return nil
				}
				if show.Print(&a.Console, sh); !changes {
					return nil
				}
				return show.PrintDiff(cmd.Context(), &a.Console, p, sh, how)
			})
			if err != nil || !live {
				return err
			}
			return onScreen(cmd.Context(), a, at, sh)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "in this `RUN` (default: the newest that has it)")
	cmd.Flags().BoolVar(&diff, "diff", false, "show the changes too")
	cmd.Flags().BoolVar(&how.Since, "since", false, "show the changes since the attempt before")
	cmd.Flags().BoolVar(&how.Words, "words", false, "show the changes with the changed words marked")
	return a.JSONFlag(cmd)
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
