package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/importer"
	"sluice/internal/layout"
	"sluice/internal/setup"
	"sluice/internal/workflows"
	"sluice/specs"
)

func importCommand(a *app) *cobra.Command {
	var from, out string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "turn a workflow of another tool into a spec",
		Long: `Reads a workflow of Archon, takt, conductor, gh-aw or symphony and writes it as specs, prompts and
scripts below .workflow/ of this repo, or of the folder that --out names. A comment marks each place
where the spec differs from the original. The report counts the constructs taken over, approximated
and left, and lists those that are not taken over. The format is found by the content. Nothing is
overwritten. Permissions of the original are not imported: they are comments for you to decide. It
exits 1 if a spec has faults; they are listed by line, and the files are written.`,
		Example: "sluice import ../other/.archon/workflows/fix.yaml\nsluice import WORKFLOW.md --from symphony --out ../try",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.below(out)
			if out == "" {
				p, err := a.bare(cmd.Context())
				if err != nil {
					return err
				}
				dir = p.Root
			}
			plan, err := importer.Read(a.below(args[0]), from)
			if err != nil {
				return err
			}
			plan.Missing(dir, layout.WorkflowDir+"/.gitignore", []byte(setup.Ignored))
			plan.Missing(dir, layout.WorkflowDir+"/"+specs.SchemaFile, specs.Schema())
			if err := plan.Write(dir); err != nil {
				return err
			}
			return tellImport(a, dir, &plan.Report)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "read it as `FORMAT`: "+strings.Join(importer.Formats(), ", "))
	cmd.Flags().StringVar(&out, "out", "", "write below `DIR`, which must exist, instead of this repo")
	return a.JSONFlag(cmd)
}

// tellImport prints what an import did.
func tellImport(a *app, dir string, r *importer.Report) error {
	if a.JSON {
		if err := a.Document(r); err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines() {
			a.Print("%s", line)
		}
		for _, f := range r.Files {
			a.Print("%s %s", a.Paint(console.Green, "made"), clean(layout.ShortPath(filepath.Join(dir, f))))
		}
		for _, f := range r.Faults {
			a.Print("%s", workflows.Line{File: f.File, Line: f.Line, Col: f.Col, Message: f.Message})
		}
	}
	if len(r.Faults) > 0 {
		a.Note("%s in the specs made: fix them by hand", plural(len(r.Faults), "fault"))
		return fault.Exit(fault.ExitFailed)
	}
	if !a.JSON {
		vars := ""
		for _, v := range r.Vars {
			vars += fmt.Sprintf(" --var %s=…", v)
		}
		a.Print("\nNext:\n  read the comments in the spec\n  sluice validate\n  sluice run %s --stub%s", r.Workflow, vars)
	}
	return nil
}
