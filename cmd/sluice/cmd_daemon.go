package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/serve"
)

func daemonCommand(a *app) *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "serve all watched repos, in the foreground",
		Long: `Runs the pipelines of every repo that was added with sluice watch add, until it is told to
stop. What systemd or launchd start; in a terminal, Ctrl-C stops it. Agents that run go on
without it, and the next start goes on where this one stopped: nothing is lost.
Settings that change on the disk are read by themselves; SIGHUP has them, and the list of repos,
read at once.`,
		Example: "sluice watch add && sluice daemon\nsluice daemon --set notify.desktop=false",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve.Daemon(cmd.Context(), a.serving(set))
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "a setting over all layers: `KEY=VALUE`")
	return cmd
}
