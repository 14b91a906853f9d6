package main

import (
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
	var diff, since bool
	cmd := &cobra.Command{
		Use:   "show [RUN] GATE|STEP",
		Short: "show what a decision needs: task, criterion, verdict, changes, rounds",
		Long: `Shows the work at a gate on one page: the task, the step's own summary, the machine's checks, the
reviewer's verdict, the changed files, the cost, and earlier failures. --diff prints the changes,
--since the changes since the attempt before. In a terminal, the page of a gate that waits for you
opens on a screen, and a key decides: f and v ask for the reason, p asks for confirmation. A key
decides only what has been on screen for a second.`,
		Example: "sluice show approve\nsluice show last approve\nsluice show code --diff | less -R\nsluice show code --since",
		Args:    console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
				case served && waits(a, sh) && !diff && !since:
					live = true
					return nil
				}
				show.Print(&a.Console, sh)
				switch {
				case since:
					return show.PrintSince(cmd.Context(), &a.Console, p, sh)
				case diff:
					return show.PrintDiff(cmd.Context(), &a.Console, p, sh)
				}
				return nil
			})
			if err != nil || !live {
				return err
			}
			said, counts, err := tui.Show(cmd.Context(), host.At(&a.Console, at), sh.Run, sh.Gate.ID, tui.Options{In: a.In, Out: a.Out, Env: a.Env, Now: a.Now})
			switch {
			case err != nil || said == "":
				return err
			case !counts:
				return fault.Failed("`sluice show "+sh.Gate.ID+"` shows its state", "%s", said)
			}
			a.Print("%s", said)
			return nil
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "in this `RUN` (default: the newest that has it)")
	cmd.Flags().BoolVar(&diff, "diff", false, "print the changes too")
	cmd.Flags().BoolVar(&since, "since", false, "print the changes since the attempt before")
	return a.JSONFlag(cmd)
}
