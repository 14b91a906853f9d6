package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/land"
	"sluice/internal/tree"
	"sluice/internal/workspace"
)

func landCommand(a *app) *cobra.Command {
	var l land.Options
	var ways [3]bool
	cmd := &cobra.Command{
		Use:   "land RUN",
		Short: "bring the work of a run onto your branch",
		Long: `Brings the work of a run with its own worktree (workspace: run) onto your branch, as one commit.
--ff, --merge and --rebase keep the run's commits and list them first: their intermediate states
were not judged. --pr pushes the run's branch and opens a pull request instead.
No hook and no merge driver of the repo runs. If a file with your own changes would be written, the
command names it and changes nothing. New commits name the run and who passed its gates, and are
signed if your git settings ask for it. A branch that differs from what a gate passed needs
--unjudged, and so does one whose merges undo commits of others.`,
		Example: "sluice land last\nsluice land phase-4-1 --rebase --close\nsluice land phase-4-1 --pr",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Getenv("SLUICE_TOKEN") != "" {
				return fault.Failed("leave the landing to a person", "only a person lands work, and this is the environment of an attempt (%s)", clean(a.Getenv("SLUICE_RUN")))
			}
			l.How = tree.Squash
			if count(append(ways[:], l.PR)) > 1 {
				return fault.Misused("name one of --ff, --merge, --rebase, --pr, or none for one commit", "more than one way to land is given")
			}
			for i, way := range []string{tree.FF, tree.Merge, tree.Rebase} {
				if ways[i] {
					l.How = way
				}
			}
			if l.PR {
				l.How = tree.PR
			}
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, _ bool) error {
				id, err := workspace.RunNamed(cmd.Context(), v, args[0])
				if err != nil {
					return err
				}
				r, err := v.Run(cmd.Context(), id)
				if err != nil {
					return err
				}
				return land.Run(cmd.Context(), &a.Console, p.Root, r, l)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&ways[0], "ff", false, "fast-forward your branch to the run's commits")
	f.BoolVar(&ways[1], "merge", false, "create a merge commit")
	f.BoolVar(&ways[2], "rebase", false, "rebase the run's commits onto your branch")
	f.BoolVar(&l.PR, "pr", false, "push the run's branch and open a pull request with gh")
	f.StringVar(&l.Onto, "onto", "", "land on `BRANCH` instead of the checked-out branch")
	f.StringVarP(&l.Message, "message", "m", "", "the commit's `TEXT`")
	f.BoolVar(&l.Unfinished, "unfinished", false, "land a run that has not completed")
	f.BoolVar(&l.Unjudged, "unjudged", false, "land work that no gate passed as it is, or that undoes commits of others")
	f.BoolVar(&l.Close, "close", false, "remove the run's worktree afterwards")
	return a.JSONFlag(cmd)
}

func count(flags []bool) (n int) {
	for _, on := range flags {
		if on {
			n++
		}
	}
	return n
}
