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

func cleanCommand(a *app) *cobra.Command {
	var keep int
	var older string
	var dry bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove the transcripts of old runs, never the journal",
		Long: `Removes .workflow/runs/<run>/ of ended runs: prompts, outputs and answers. Decisions stay in the
journal and the audit files. Asks first.`,
		Example: "sluice clean --keep 5 --older 30d\nsluice clean --older 2w --dry-run",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := days("--older", older)
			if err != nil {
				return err
			}
			return cleanRuns(cmd.Context(), a, keep, span, dry)
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 10, "keep the newest `N` ended runs")
	cmd.Flags().StringVar(&older, "older", "7d", "only runs that ended more than `TIME` ago: 12h, 7d, 2w")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only list what would be removed")
	return a.JSONFlag(cmd)
}

// days parses a duration that may be in days or weeks.
func days(flag, s string) (time.Duration, error) {
	for unit, span := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if num, ok := strings.CutSuffix(s, unit); ok {
			if n, err := strconv.Atoi(num); err == nil && n >= 0 && n < 10000 {
				return time.Duration(n) * span, nil
			}
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fault.Misused("write it as 12h, 7d or 2w", "%s %s: not a duration", flag, clean(s))
}

func cleanRuns(ctx context.Context, a *app, keep int, older time.Duration, dry bool) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	old, err := retention.Old(ctx, &a.Console, p, keep, older)
	if err != nil {
		return err
	}
	if a.JSON && dry {
		return a.Document(map[string]any{"removed": false, "runs": old})
	}
	var sum int64
	t := &console.Table{}
	for _, o := range old {
		sum += o.Bytes
		t.Row(console.Styled(o.Run, console.Plain), console.Styled(render.Size(o.Bytes), console.Plain),
			console.Styled("ended "+render.Ago(a.Now().Sub(o.Ended))+" ago", console.Dim))
	}
	if !a.JSON {
		a.PrintTable(t)
		if len(old) == 0 {
			a.Print("Nothing to remove.")
		}
	}
	if len(old) == 0 || dry {
		if a.JSON {
			return a.Document(map[string]any{"removed": true, "runs": []retention.Run{}})
		}
		return nil
	}
	if yes, err := a.Ask(fmt.Sprintf("Remove the transcripts of %s (%s)? The journal stays.", plural(len(old), "run"), render.Size(sum))); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	if err := retention.Remove(ctx, p, old); err != nil {
		return err
	}
	if a.JSON {
		return a.Document(map[string]any{"removed": true, "runs": old})
	}
	a.Print("removed")
	return nil
}
