package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

func lsCommand(a *app) *cobra.Command {
	var all bool
	var status string
	cmd := &cobra.Command{
		Use:   "ls [TASKS.json]",
		Short: "list the runs of this repo, or the tasks of a task file",
		Long: `Prints one row per run, newest last: its state, progress and age, and what a live run waits for, or the
branch of an ended one that has not landed.
Without --all it shows the last ten ended runs only, and no ended runs of tasks; with --all it does not
look for branches.
For a task file it lists the tasks by status, in the order they are taken, and what they wait for.`,
		Example: "sluice ls\nsluice ls --json\nsluice ls to-do.json --status blocked",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && isTaskFile(args[0]):
				return listTasks(a, args[0], status)
			case len(args) == 1:
				return fault.Misused("a task file ends in .json; `sluice status "+clean(args[0])+"` shows a run",
					"%s: not a task file", clean(args[0]))
			case status != "":
				return fault.Misused("as in `sluice ls to-do.json --status todo`", "--status needs a task file")
			}
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				st, err := v.Status(cmd.Context(), "")
				if err != nil {
					return err
				}
				return show.Runs(cmd.Context(), &a.Console, st, served, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all known runs")
	cmd.Flags().StringVar(&status, "status", "", "for a task file: only tasks with `STATUS` (todo, doing, done, blocked)")
	return a.JSONFlag(cmd)
}

func statusCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "status [RUN]",
		Short: "show a run step by step and what it waits for",
		Long: `RUN is a run's id (phase-4-1), a workflow (its newest run) or "last". Without RUN it shows every live
run, or the last ended one. It also shows what stands between an agent and a gate (trust), and
whether the spec has changed since the run started.`,
		Example: "sluice status\nsluice status last --json",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				return show.Status(cmd.Context(), &a.Console, p, v, served, args)
			})
		},
	})
}
