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
		Long: `Runs the pipelines of every repo on the list of sluice watch until it is stopped. systemd or launchd
starts this command; in a terminal, Ctrl-C stops it. Agents keep running without it, and the next
start continues from there: nothing is lost.
Changed settings files are read automatically. SIGHUP rereads them, and the list of repos, at once.`,
		Example: "sluice watch add && sluice daemon\nsluice daemon --set notify.desktop=false",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve.Daemon(cmd.Context(), a.serving(set))
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "a setting that overrides every layer: `KEY=VALUE`")
	return cmd
}
