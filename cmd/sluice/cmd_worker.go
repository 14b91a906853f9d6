package main

import (
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
labels, themselves (on: in the spec) or by their role's settings (roles.NAME.on), to a worker that has
them all. Their agents run here, with this machine's settings and environment; their work goes back as
a commit. Ctrl-C stops the worker: its agents go on, and the next start takes them up again.`,
		Example: "sluice worker --cluster nats://a,b,c --journal ID --labels linux,claude\n" +
			"sluice worker --cluster tls://a,b,c --nkey worker.nk --labels gpu --slots 8",
		Args: console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Labels = strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })
			p, err := a.bare(cmd.Context())
			if err != nil {
				return err
			}
			return serve.Work(cmd.Context(), a.serving(nil), p, in)
		},
	}
	cmd.Flags().StringVar(&in.Servers.URLs, "cluster", "", "the NATS servers: `URL,URL,…`")
	cmd.Flags().StringVar(&in.Journal, "journal", "", "work for the journal with the `ID`; absent: this repo's own")
	cmd.Flags().StringVar(&labels, "labels", "", "what this machine is for: `LABEL,LABEL,…`")
	cmd.Flags().IntVar(&in.Slots, "slots", 1, "do at most `N` steps at once")
	serverFlags(cmd.Flags(), &in.Servers)
	return cmd
}

func workersCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "workers",
		Short: "list the machines that do steps for this one, and what they do",
		Long: `Lists the workers that the daemon of this repo has heard of in the last seconds: their labels, their
slots, since when they are there, and the steps that they do.`,
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
}
