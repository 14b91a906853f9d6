package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/land"
	"sluice/internal/tree"
	"sluice/internal/workspace"
)

// ways are the flags that choose how work lands; without one it lands as one commit.
type ways struct{ ff, merge, rebase, pr bool }

// chosen returns the way that the flags name, of those of internal/tree.
func (w ways) chosen() (string, error) {
	how, given := tree.Squash, 0
	for _, f := range []struct {
		set bool
		way string
	}{{w.ff, tree.FF}, {w.merge, tree.Merge}, {w.rebase, tree.Rebase}, {w.pr, tree.PR}} {
		if f.set {
			how = f.way
			given++
		}
	}
	if given > 1 {
		return "", fault.Misused("name one of --ff, --merge, --rebase, --pr, or none for one commit",
			"more than one way to land is given")
	}
	return how, nil
}

func landCommand(a *app) *cobra.Command {
	var l land.Options
	var w ways
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
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err = a.forPersons("lands work", "leave the landing to a person"); err != nil {
				return err
			}
			if l.How, err = w.chosen(); err != nil {
				return err
			}
			return landRun(cmd.Context(), a, args[0], l)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&w.ff, "ff", false, "fast-forward your branch to the run's commits")
	f.BoolVar(&w.merge, "merge", false, "create a merge commit")
	f.BoolVar(&w.rebase, "rebase", false, "rebase the run's commits onto your branch")
	f.BoolVar(&w.pr, "pr", false, "push the run's branch and open a pull request with gh")
	f.StringVar(&l.Onto, "onto", "", "land on `BRANCH` instead of the checked-out branch")
	f.StringVarP(&l.Message, "message", "m", "", "the commit's `TEXT`")
	f.BoolVar(&l.Unfinished, "unfinished", false, "land a run that has not completed")
	f.BoolVar(&l.Unjudged, "unjudged", false, "land work that no gate passed as it is, or that undoes commits of others")
	f.BoolVar(&l.Close, "close", false, "remove the run's worktree afterwards")
	return a.JSONFlag(cmd)
}

// endsIn is how long a live run may take to end before landing refuses it.
const endsIn = time.Second

// landRun lands the work of the named run.
func landRun(ctx context.Context, a *app, named string, l land.Options) error {
	return a.withView(ctx, func(p *workspace.Workspace, v workspace.Viewer, _ bool) error {
		r, err := workspace.RunOf(ctx, v, named)
		// After the pass of its last gate a run is live for a moment, while its branch moves.
		for until := time.Now().Add(endsIn); err == nil && r.Live() && !l.Unfinished && time.Now().Before(until); {
			if !health.Wait(ctx, endsIn/20) {
				return ctx.Err()
			}
			r, err = workspace.RunOf(ctx, v, named)
		}
		if err != nil {
			return err
		}
		l.State = p.State
		return land.Run(ctx, &a.Console, p.Root, r, l)
	})
}
