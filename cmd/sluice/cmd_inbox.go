package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

func inboxCommand(a *app) *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "list what waits for you in all repos",
		Long: `Lists each gate that asks a person, each open veto window, each step on offer and each paused run:
its place, its age, the reason and the command to type. Repos that no process serves are read from
their journals.`,
		Example: "sluice inbox\nsluice inbox --here --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var items []show.Waiting
			unread, err := 0, error(nil)
			if here {
				err = a.withView(cmd.Context(), func(_ *workspace.Workspace, v workspace.Viewer, served bool) (err error) {
					var stall string
					if items, stall, err = show.Inbox(cmd.Context(), &a.Console, v, served); stall != "" {
						a.Warn("%s", stall)
					}
					return err
				})
			} else {
				collectLate()
				items, unread, err = show.AllInboxes(cmd.Context(), &a.Console, a.dir)
			}
			if err != nil {
				return err
			}
			return show.PrintInbox(&a.Console, items, unread)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only this repo")
	return a.JSONFlag(cmd)
}
