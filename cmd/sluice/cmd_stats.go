package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/internal/stats"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// statsOptions are the arguments of `sluice stats`.
type statsOptions struct {
	workflow string // "" = all
	since    string // a duration; "" = from the first run on
	svg      string // the file to draw into; "" = none
}

func statsCommand(a *app) *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats [WORKFLOW]",
		Short: "count time, failures, cost and people's waiting time",
		Long: `Counts the runs of this repo, or of one workflow, with their tasks: how long runs took, and steps
until all their gates had passed (waiting included), how each gate decided, how long it waited for
a person, and what each role and day used. It names gates that may not earn their cost: one that
failed nothing in its last 50 rounds, and one whose failures a person always overrode.`,
		Example: "sluice stats\nsluice stats gated-pipeline --since 30d --svg stats.svg",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.workflow = arg(args, 0)
			return countRuns(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVar(&o.since, "since", "", "only runs that started within `TIME`, such as 12h, 7d or 2w")
	cmd.Flags().StringVar(&o.svg, "svg", "", "also draw it into `FILE`")
	return a.JSONFlag(cmd)
}

// countRuns counts the repo's journal, and prints or draws the result.
func countRuns(ctx context.Context, a *app, o statsOptions) error {
	c := &stats.Counter{Workflow: o.workflow}
	if o.since != "" {
		d, err := days("--since", o.since)
		if err != nil {
			return err
		}
		c.Since = a.Now().Add(-d)
	}
	return a.withView(ctx, func(_ *workspace.Workspace, v workspace.Viewer, _ bool) error {
		count := func(l daemon.Line) error { return c.Add(l.At, l.Fact) }
		if err := v.Facts(ctx, "", 0, false, count); err != nil {
			return err
		}
		if err := hasRun(c); err != nil {
			return err
		}
		s := c.Stats()
		if o.svg != "" {
			if err := writePicture(o.svg, stats.SVG(s)); err != nil {
				return err
			}
		}
		if a.JSON {
			return a.Document(s)
		}
		show.Stats(&a.Console, s)
		return nil
	})
}

// hasRun returns an error if the counted workflow has no runs of its own.
func hasRun(c *stats.Counter) error {
	known := c.Known()
	alone, child := known[c.Workflow]
	if c.Workflow == "" || alone {
		return nil
	}
	if child {
		return fault.Failed("`sluice stats` counts it with the runs it belongs to",
			"workflow %q ran only for other workflows", clean(c.Workflow))
	}
	advice := text.MeantOr("`sluice ls --all` lists the runs", "", c.Workflow, slices.Sorted(maps.Keys(known)))
	return fault.Failed(advice, "no run of a workflow %q yet", clean(c.Workflow))
}

// writePicture writes an SVG. It replaces only a picture, and follows no link.
func writePicture(file string, svg []byte) error {
	f, _, err := atomicfile.Open(filepath.Dir(file), filepath.Base(file))
	if err == nil {
		head := make([]byte, len("<svg"))
		n, _ := f.Read(head)
		f.Close()
		if n > 0 && string(head[:n]) != "<svg" {
			err = fs.ErrExist
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Failed("name another file, or remove it first",
			"%s exists and is not a picture: nothing was written", clean(file))
	}
	return atomicfile.Write(file, svg, 0o644)
}
