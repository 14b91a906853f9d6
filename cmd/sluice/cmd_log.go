package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

// logOptions are the arguments of `sluice log`.
type logOptions struct {
	run         []string // as named; none = all runs
	follow, all bool
}

func logCommand(a *app) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "log [RUN]",
		Short: "read the journal: what happened, who did it and why",
		Long: `Prints the journal, the record of the repo, in order: what steps, gates and people did, and warnings.
--all prints every decision, bookkeeping included (which step is due, which file was read, which
notice was sent). -f follows it. --json prints all facts as they are stored.`,
		Example: "sluice log last\nsluice log -f\nsluice log last --all",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args
			return printLog(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow new output until Ctrl-C")
	cmd.Flags().BoolVar(&o.all, "all", false, "print bookkeeping too")
	cmd.Flags().Bool("brief", false, "the default")
	_ = cmd.Flags().MarkHidden("brief") // of earlier releases; the flag is there
	return a.JSONFlag(cmd)
}

// printLog prints the journal, and follows it until ctx ends.
func printLog(ctx context.Context, a *app, o logOptions) error {
	return a.withView(ctx, func(_ *workspace.Workspace, v workspace.Viewer, served bool) (err error) {
		run := ""
		if len(o.run) > 0 {
			if run, err = workspace.RunNamed(ctx, v, o.run[0]); err != nil {
				return err
			}
		}
		if o.follow && !served {
			a.Note("no sluice process serves this repo now: nothing more will come")
		}
		log := show.NewLog(&a.Console, run == "", o.all)
		err = v.Facts(ctx, run, 0, o.follow, log.Fact)
		if o.follow && errors.Is(err, context.Canceled) {
			return nil
		}
		if err == nil && log.Left > 0 {
			a.Note("%s of bookkeeping left out: --all prints all", plural(log.Left, "line"))
		}
		return err
	})
}

func explainCommand(a *app) *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "explain [RUN] STEP|GATE",
		Short: "explain fact by fact why a step or a gate is where it is",
		Long: `Prints every fact that led to the present state, in order. Facts that followed from the same event
are below it with a └. The end shows the state and what it waits for.`,
		Example: "sluice explain code\nsluice explain review --run phase-4-1",
		Args:    console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := ofRun(&run, args)
			if err != nil {
				return err
			}
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				r, err := workspace.RunWith(cmd.Context(), v, run, args[0])
				if err != nil {
					return err
				}
				return show.Explain(cmd.Context(), &a.Console, v, r, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "in this `RUN` (default: where it waits for you, else the newest)")
	return a.JSONFlag(cmd)
}

// ofRun removes a run before the step or gate from the arguments, as in commands that take the run
// first.
func ofRun(run *string, args []string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	if *run != "" && *run != args[0] {
		return nil, fault.Misused("name one run", "two runs are named: %s, and %s by --run", clean(args[0]), clean(*run))
	}
	*run = args[0]
	return args[1:], nil
}

func tailCommand(a *app) *cobra.Command {
	var f show.Following
	cmd := &cobra.Command{
		Use:   "tail [RUN [STEP]]",
		Short: "print an agent's output, live with -f",
		Long: `Prints the end of an agent's output: of the step that works now or, while it is judged, of its
reviewer, tasks included; if nothing works, of the last that did. Without RUN it takes the newest run
in which something works, not one that waits. -f follows the output, continues with the next launch,
and says so, until the run has ended; with STEP it stays with that step. For built-in agents it shows
messages, tools, changed files and cost; --raw prints their events unchanged. Control characters are
removed.`,
		Example: "sluice tail -f\nsluice tail phase-4-1 code -n 200",
		Args:    console.Between(0, 2),
		RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, args []string) error {
			f.Run, f.Step = arg(args, 0), arg(args, 1)
			return f.Print(ctx, &a.Console, p)
		}),
	}
	cmd.Flags().BoolVarP(&f.Follow, "follow", "f", false, "follow new output until the run has ended, or Ctrl-C")
	cmd.Flags().BoolVar(&f.Stderr, "stderr", false, "print its standard error instead")
	cmd.Flags().BoolVar(&f.Raw, "raw", false, "print the events of built-in agents unchanged")
	cmd.Flags().IntVarP(&f.Lines, "lines", "n", 40, "print the last `N` lines, at most 10000")
	return cmd
}

// arg returns the argument at i; "" if it was not given.
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
