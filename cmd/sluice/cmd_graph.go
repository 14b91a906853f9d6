package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs/graph"
)

func graphCommand(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "graph WORKFLOW|RUN|FILE",
		Short: "draw a workflow, or a run with its states",
		Long: `Draws the steps, the gates and where each outcome leads, as text, Mermaid (for Markdown), DOT
or SVG. For a run, such as phase-4-1, it also shows the state of each step and gate.`,
		Example: "sluice graph gated-pipeline\nsluice graph gated-pipeline-1 --format svg > run.svg",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, run, err := drawn(a, cmd, args[0])
			if err != nil {
				return err
			}
			var states map[string]string
			if run != nil {
				states = run.States()
			}
			return drawGraph(&a.Console, spec, states, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid, dot or svg")
	return cmd
}

func drawGraph(con *console.Console, spec *engine.Spec, states map[string]string, format string) error {
	var picture string
	switch format {
	case "text":
		picture = graph.Text(spec, states)
	case "mermaid":
		picture = graph.Mermaid(spec, states)
	case "dot":
		picture = graph.Dot(spec, states)
	case "svg":
		picture = string(graph.SVG(spec, states))
	default:
		known := []string{"text", "mermaid", "dot", "svg"}
		advice := "one of: text, mermaid, dot, svg"
		if near := text.Meant(format, known); near != "" {
			advice = "did you mean --format " + near + "?"
		}
		return fault.Misused(advice, "no format %q", clean(format))
	}
	con.Print("%s", strings.TrimRight(picture, "\n"))
	return nil
}

func drawn(a *app, cmd *cobra.Command, name string) (*engine.Spec, *daemon.RunStatus, error) {
	if file := a.below(name); layout.IsFile(file) {
		spec, err := workflows.Load(&a.Console, file)
		return spec, nil, err
	}
	p, err := a.place(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	file, specErr := workflows.File(p, name)
	if specErr == nil {
		spec, err := workflows.Load(&a.Console, file)
		return spec, nil, err
	}
	v, _, err := p.View(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	defer v.Close()
	id, err := workspace.RunNamed(cmd.Context(), v, name)
	if err != nil {
		return nil, nil, specErr
	}
	run, err := v.Run(cmd.Context(), id)
	if err != nil {
		return nil, nil, err
	}
	spec, err := workspace.SpecOf(cmd.Context(), v, run)
	return spec, &run, err
}
