package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs/graph"
)

func graphCommand(a *app) *cobra.Command {
	var format, svg string
	cmd := &cobra.Command{
		Use:   "graph WORKFLOW|RUN|FILE",
		Short: "draw a workflow, or a run with its states",
		Long: `Draws the steps, the gates and where each outcome leads, as text, Mermaid (for Markdown), DOT
or SVG. For a run, such as phase-4-1, it also shows the state of each step and gate, attempts, and
how often work was sent back. The SVG stands alone, and is light or dark as its reader prefers; a
strip is an SVG of one row of bullets.`,
		Example: "sluice graph gated-pipeline\nsluice graph gated-pipeline-1 --svg run.svg",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, run, err := drawn(a, cmd, args[0])
			if err != nil {
				return err
			}
			var states map[string]string
			var o graph.Options
			if run != nil {
				states = run.States()
				o.Notes, o.Taken = render.PictureNotes(*run, time.Now())
			}
			if svg != "" && svg != "-" {
				return writePicture(svg, graph.SVG(spec, states, o))
			}
			if svg == "-" {
				format = "svg"
			}
			return drawGraph(&a.Console, spec, states, o, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid, dot, svg or strip")
	cmd.Flags().StringVar(&svg, "svg", "", "draw it as SVG into `FILE`; - is the standard output")
	cmd.MarkFlagsMutuallyExclusive("format", "svg")
	return cmd
}

func drawGraph(
	con *console.Console, spec *engine.Spec, states map[string]string, o graph.Options, format string,
) error {
	var picture string
	switch format {
	case "text":
		picture = graph.Text(spec, states, o)
	case "mermaid":
		picture = graph.Mermaid(spec, states, o)
	case "dot":
		picture = graph.Dot(spec, states, o)
	case "svg":
		picture = string(graph.SVG(spec, states, o))
	case "strip":
		picture = string(graph.Strip(spec, states, o))
	default:
		known := []string{"text", "mermaid", "dot", "svg", "strip"}
		advice := text.MeantOr("one of: "+strings.Join(known, ", "), "--format ", format, known)
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
