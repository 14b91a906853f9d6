package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/serve"
	"sluice/internal/workspace"
)

func clusterCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster", Short: "keep a repo's journal on several machines",
		Long: `The journal is in a stream of NATS JetStream, beside the local file: when the machine that decides
dies, a standby continues from the same record. One machine needs none of it.`,
		Example: "sluice cluster init nats://a,b,c\nsluice daemon --cluster nats://a,b,c",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	var o serve.Begin
	begin := a.JSONFlag(&cobra.Command{
		Use: "init URL…", Short: "begin the stream of this repo's journal",
		Long: `Creates the stream and sends the whole journal there. Only this command begins a stream: a daemon
that finds none refuses. Run it once, on the machine that has the journal, while no process serves
the repo; on the others, run sluice cluster join with the id that it prints.`,
		Example: "sluice cluster init nats://a,b,c\nsluice cluster init tls://a --replicas 1", Args: console.Between(1, 16),
	})
	serverFlags(begin.Flags(), &o.Servers)
	begin.Flags().IntVar(&o.Replicas, "replicas", 3, "how many servers keep the stream: `N`, 1 to 5")
	begin.Flags().DurationVar(&o.Lease, "lease", 6*time.Second, "a leader that is silent for `TIME` is replaced")
	var servers cluster.Servers
	join := &cobra.Command{
		Use: "join ID URL…", Short: "keep on this machine a journal that another one began",
		Long:    "Run it in a clone of the repo that has no journal yet. The next sluice daemon --cluster fetches it.",
		Example: "sluice cluster join ID nats://a,b,c\nsluice cluster join ID tls://a", Args: console.Between(2, 17),
	}
	serverFlags(join.Flags(), &servers)
	leave := &cobra.Command{
		Use: "leave", Short: "continue alone on this machine, with its copy of the journal",
		Long: `The stream and the other machines stay as they are. What this machine records from now on is not in
the stream, so it cannot join again with this journal once another machine has decided anything.`,
		Example: "sluice cluster leave\nsluice cluster leave --yes", Args: console.Between(0, 0),
	}
	begin.RunE = inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
		o.Servers.URLs = strings.Join(args, ",")
		return serve.BeginCluster(ctx, &a.Console, p, o)
	})
	join.RunE = inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
		servers.URLs = strings.Join(args[1:], ",")
		return serve.JoinCluster(ctx, &a.Console, p, args[0], servers)
	})
	leave.RunE = inRepo(a.place, func(_ context.Context, p *workspace.Workspace, _ []string) error {
		return serve.LeaveCluster(&a.Console, p)
	})
	cmd.AddCommand(begin, join, leave)
	return cmd
}

func serverFlags(f *pflag.FlagSet, s *cluster.Servers) {
	f.StringVar(&s.NKey, "nkey", "", "log in to the servers with the nkey in `FILE`")
	f.StringVar(&s.CA, "ca", "", "check the servers' certificates against those in `FILE`")
}
