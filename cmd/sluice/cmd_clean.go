package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/retention"
)

// cleaning is what `sluice clean` removes.
type cleaning struct {
	keep   int           // newest ended runs that stay
	older  time.Duration // least time since a run's end
	dryRun bool
}

func cleanCommand(a *app) *cobra.Command {
	var c cleaning
	var older string
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove the transcripts of old runs, never the journal",
		Long: `Removes .workflow/runs/<run>/ of ended runs: prompts, outputs and answers; and the refs that keep what
their attempts left. Decisions stay in the journal and the audit files. Asks first.`,
		Example: "sluice clean --keep 5 --older 30d\nsluice clean --older 2w --dry-run",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.older, err = days("--older", older); err != nil {
				return err
			}
			return cleanRuns(cmd.Context(), a, c)
		},
	}
	cmd.Flags().IntVar(&c.keep, "keep", 10, "keep the newest `N` ended runs")
	cmd.Flags().StringVar(&older, "older", "7d", "only runs that ended more than `TIME` ago: 12h, 7d, 2w")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "only list what would be removed")
	return a.JSONFlag(cmd)
}

// maxDays limits the number before d or w: 10,000 weeks still fit into a time.Duration.
const maxDays = 10_000

// days parses a flag's duration, which may be in days or weeks.
func days(flag, s string) (time.Duration, error) {
	for unit, span := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if num, ok := strings.CutSuffix(s, unit); ok {
			if n, err := strconv.Atoi(num); err == nil && n >= 0 && n < maxDays {
				return time.Duration(n) * span, nil
			}
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fault.Misused("write it as 12h, 7d or 2w", "%s %s: not a duration", flag, clean(s))
}

// cleanRuns lists old runs, asks, and removes their files.
func cleanRuns(ctx context.Context, a *app, c cleaning) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	old, err := retention.Old(ctx, &a.Console, p, c.keep, c.older)
	if err != nil {
		return err
	}
	if a.JSON && c.dryRun {
		return a.Document(map[string]any{"removed": false, "runs": old})
	}
	if !a.JSON {
		listOld(a, old)
	}
	if len(old) == 0 || c.dryRun {
		if a.JSON {
			return a.Document(map[string]any{"removed": true, "runs": []retention.Run{}})
		}
		return nil
	}
	if yes, err := a.Ask(fmt.Sprintf("Remove the transcripts of %s (%s)? The journal stays.", plural(len(old), "run"),
		render.Size(bytesOf(old)))); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	if err := retention.Remove(ctx, p, old); err != nil {
		return err
	}
	return a.answer(map[string]any{"removed": true, "runs": old}, "removed")
}

func listOld(a *app, old []retention.Run) {
	if len(old) == 0 {
		a.Print("Nothing to remove.")
		return
	}
	t := &console.Table{}
	for _, o := range old {
		t.Row(console.Styled(o.Run, console.Plain), console.Styled(render.Size(o.Bytes), console.Plain),
			console.Styled("ended "+render.Ago(a.Now().Sub(o.Ended))+" ago", console.Dim))
	}
	a.PrintTable(t)
}

func bytesOf(runs []retention.Run) (sum int64) {
	for _, r := range runs {
		sum += r.Bytes
	}
	return sum
}
