package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/serve"
)

func daemonCommand(a *app) *cobra.Command {
	var set []string
	var in serve.Cluster
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "serve all watched repos, in the foreground",
		Long: `Runs the pipelines of every repo on the list of sluice watch until it is stopped. systemd or launchd
starts this command; in a terminal, Ctrl-C stops it. Agents keep running without it, and the next
start continues from there: nothing is lost.
Changed settings files are read automatically. SIGHUP rereads them, and the list of repos, at once.
With --cluster, the journal of each repo is in a stream too (sluice cluster init), and another
machine takes over when this one dies.`,
		Example: "sluice watch add && sluice daemon\nsluice daemon --set notify.desktop=false",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := a.serving(set)
			if o.Cluster = &in; in.Servers.URLs == "" && (in.Standby || in.Workers != "") {
				return fault.Misused("give --cluster nats://a,b,c", "--standby and --workers-nkey are for a journal that "+
					"several machines keep")
			}
			return serve.Daemon(cmd.Context(), o)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "a setting that overrides every layer: `KEY=VALUE`")
	cmd.Flags().StringVar(&in.Servers.URLs, "cluster", "", "keep the journals in streams of NATS servers too: `URL,URL,…`")
	cmd.Flags().BoolVar(&in.Standby, "standby", false, "follow, and decide only once no other machine does")
	cmd.Flags().StringVar(&in.Workers, "workers-nkey", "", "reach workers in their own account, with the nkey in `FILE`")
	serverFlags(cmd.Flags(), &in.Servers)
	return cmd
}
