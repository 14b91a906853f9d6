package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/serve"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

func workerCommand(a *app) *cobra.Command {
	var in serve.Worker
	var labels string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "do the steps that another machine sends to this one",
		Long: `Run it in a clone of the repo. The machine that decides (sluice daemon --cluster) sends steps that name
labels, in the spec (on:) or in their role's settings (roles.NAME.on), to a worker that has them all.
Their agents run here, with this machine's settings and environment; their work goes back as a commit.
A worker with an nkey obeys only what is signed by a key that --desk names. After Ctrl-C it takes
nothing new, and ends once its launches are done. A second Ctrl-C ends it at once: its agents
continue, and a start within the lease takes them up again.`,
		Example: "sluice worker --cluster nats://a,b,c --journal ID --labels linux,claude\n" +
			"sluice worker --cluster tls://a,b,c --nkey worker.nk --desk KEY --labels gpu --slots 8\n" +
			"sluice worker --nkey worker.nk --journal ID --rights",
		Args: console.Between(0, 0),
		RunE: inRepo(a.bare, func(ctx context.Context, p *workspace.Workspace, _ []string) error {
			in.Labels = strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })
			return serve.Work(ctx, a.serving(nil), p, in)
		}),
	}
	cmd.Flags().StringVar(&in.Servers.URLs, "cluster", "", "the NATS servers: `URL,URL,…`")
	cmd.Flags().StringVar(&in.Journal, "journal", "", "work for the journal with the `ID`; absent: this repo's own")
	cmd.Flags().StringVar(&labels, "labels", "", "the labels of this machine: `LABEL,LABEL,…`")
	cmd.Flags().IntVar(&in.Slots, "slots", 1, "do at most `N` steps at once")
	cmd.Flags().StringArrayVar(&in.Desks, "desk", nil, "obey what is signed by the `KEY` of a machine that decides")
	cmd.Flags().BoolVar(&in.Rights, "rights", false, "print the rights that the servers must give this worker")
	serverFlags(cmd.Flags(), &in.Servers)
	return cmd
}

func workersCommand(a *app) *cobra.Command {
	drain := func(use, short, long string, drain bool) *cobra.Command {
		return &cobra.Command{Use: use + " ID", Short: short, Long: long, Args: console.Between(1, 1),
			Example: "sluice workers\nsluice workers " + use + " 0123456789abcdef",
			RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
				return serve.DrainWorker(ctx, &a.Console, p, args[0], drain)
			})}
	}
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "workers",
		Short: "list the machines that do steps for this one, and what they do",
		Long: `Lists the workers that the daemon of this repo has heard of in the last seconds: their labels, their
slots, how long they have been there, and the steps that they do; and the key for --desk of sluice
worker.`,
		Example: "sluice workers\nsluice workers --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withView(cmd.Context(), func(_ *workspace.Workspace, v workspace.Viewer, _ bool) error {
				st, err := v.Status(cmd.Context(), "")
				if err != nil {
					return err
				}
				return show.Workers(&a.Console, st.Cluster)
			})
		},
	})
	cmd.AddCommand(drain("drain", "have a worker finish what it has, and take nothing new",
		"It stays drained, even after a restart, until you resume it. Run this on the machine that leads.", true),
		drain("resume", "have a drained worker take steps again",
			"It gets steps from then on. Run this on the machine that leads.", false))
	return cmd
}
