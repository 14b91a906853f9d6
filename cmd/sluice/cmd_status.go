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
		Long: `One line a run, the newest last: its state, how far it is, since when, and what a live one
waits for. Left out unless --all: ended runs beyond the last ten, and ended runs of a task.
With a task file: its tasks by status, in each as they are selected, and what they wait for.`,
		Example: "sluice ls\nsluice ls --json\nsluice ls to-do.json --status blocked",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && isTaskFile(args[0]):
				return listTasks(a, args[0], status)
			case len(args) == 1:
				return fault.Misused("a task file ends in .json; `sluice status "+clean(args[0])+"` tells of a run", "%s: no task file", clean(args[0]))
			case status != "":
				return fault.Misused("as in `sluice ls to-do.json --status todo`", "--status is of tasks: name their file")
			}
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				st, err := v.Status(cmd.Context(), "")
				if err != nil {
					return err
				}
				return show.Runs(&a.Console, st, served, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all runs that are known")
	cmd.Flags().StringVar(&status, "status", "", "of a task file: only tasks that are `STATUS` (todo, doing, done, blocked)")
	return a.JSONFlag(cmd)
}

func statusCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "status [RUN]",
		Short: "show a run step by step, and what it waits for since when",
		Long: `RUN is a run's id (phase-4-1), a workflow (its newest run) or "last". Without one: every live
run, or the last that ended. Shows too what stands between an agent and a gate (trust), and
whether the spec's file has changed since the run started.`,
		Example: "sluice status\nsluice status last --json",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				return show.Status(cmd.Context(), &a.Console, p, v, served, args)
			})
		},
	})
}
