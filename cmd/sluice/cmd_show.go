package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

func showCommand(a *app) *cobra.Command {
	var run string
	var diff, since bool
	cmd := &cobra.Command{
		Use:   "show [RUN] GATE|STEP",
		Short: "show what a decision needs: task, criterion, verdict, changes, rounds",
		Long: `Shows the work at a gate on one page: the task, the step's own summary, the machine's checks, the
reviewer's verdict, the changed files, the cost, and earlier failures. --diff prints the changes,
--since the changes since the attempt before. In a terminal, a key then decides a gate that waits
for you: f and v ask for the reason, p asks for confirmation. Keys that were typed before it asks,
or pasted, decide nothing.`,
		Example: "sluice show XG-2-end\nsluice show last XG-2-end\nsluice show X-2 --diff | less -R\nsluice show X-2 --since",
		Args:    console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := ofRun(&run, args)
			if err != nil {
				return err
			}
			var sh *show.Shown
			var at *workspace.Workspace
			err = a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				r, err := workspace.RunWith(cmd.Context(), v, run, args[0])
				if err != nil {
					return err
				}
				if sh, err = show.Gather(cmd.Context(), p, v, r, args[0]); err != nil {
					return err
				}
				at = p
				if a.JSON {
					return a.Document(sh)
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
			if err != nil || a.JSON || !a.Interactive() {
				return err
			}
			return decide.Here(cmd.Context(), &a.Console, at, sh)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "in this `RUN` (default: the newest that has it)")
	cmd.Flags().BoolVar(&diff, "diff", false, "print the changes too")
	cmd.Flags().BoolVar(&since, "since", false, "print the changes since the attempt before")
	return a.JSONFlag(cmd)
}
