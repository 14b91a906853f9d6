package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/shells"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs"
)

func validateCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "validate [SPEC|TASKS.json...]",
		Short: "report everything that is wrong with specs or a task file",
		Long: `Checks specs, the repo's settings, the prompts of their roles and their stub scripts as
a run would. Prints all faults at once, each as file:line:col: message. SPEC is a file or a
workflow's id; without one it checks all of .workflow/specs/. For a task file, which ends in .json,
it reports the first fault: invalid JSON, a duplicate id, an unknown dependency or a cycle.
Run it after each edit and in CI: it exits 1 on a fault. Notes are not faults. They name commands
that run unknown parts of the repo, criteria that a machine could check if written differently or
that nobody judges, gates that show no change of the work, texts whose end YAML takes for a comment,
and steps that can run at the same time in one folder.`,
		Example: "sluice validate\nsluice validate phase-4-search-index\nsluice validate to-do.json",
		Args:    console.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			taskFiles, named := taskFilesOf(args)
			files, err := specArgs(a, cmd, named, taskFiles)
			if err != nil {
				return err
			}
			return validateFiles(a, files, taskFiles, len(args) == 0)
		},
	})
}

// validateFiles reports the faults of specs and task files. every: the specs are complete, so files
// that belong to none are reported too.
func validateFiles(a *app, files, taskFiles []string, every bool) error {
	all, said := []workflows.Line{}, map[specs.Fault]bool{}
	tell := func(more []workflows.Line) {
		all = append(all, more...)
		for _, x := range more {
			if !a.JSON {
				a.Print("%s", x)
			}
		}
	}
	bad, err := validTasks(a, taskFiles)
	if err != nil {
		return err
	}
	tell(bad)
	settings := workflows.SettingsFaults(&a.Console, files)
	tell(settings)
	if every {
		tell(workflows.StrayStubs(files))
	}
	notes := agentNotes(&a.Console, files)
	for _, f := range files {
		spec, faults := specs.LoadFile(f)
		notes = slices.Concat(notes, workflows.LinesOf(specs.Notes(f)), workflows.JudgingNotes(f, spec),
			workflows.LawNotes(f, spec), workflows.RoleNotes(&a.Console, f, spec))
		faults = append(faults, workflows.StubFaults(f, spec)...)
		for _, x := range workflows.PromptFaults(&a.Console, f, spec) {
			if !said[x] { // specs share their roles
				said[x] = true
				faults = append(faults, x)
			}
		}
		tell(workflows.LinesOf(faults))
		if len(faults) == 0 && !a.JSON {
			a.Print("%s %s: %s, %s", a.Paint(console.Green, "ok"), layout.ShortPath(f), plural(len(spec.Steps), "step"),
				plural(gatesOf(spec), "gate"))
		}
	}
	if a.JSON {
		if err := a.Document(map[string]any{"ok": len(all) == 0, "files": len(files) + len(taskFiles), "faults": all,
			"notes": notes}); err != nil {
			return err
		}
	} else {
		for _, x := range notes {
			a.Marked("note", x.String())
		}
	}
	if len(all) == 0 {
		return nil
	}
	if !a.JSON {
		where := plural(len(files)+len(taskFiles), "file")
		if len(settings) > 0 {
			where += " and the settings"
		}
		a.Note("%s in %s", plural(len(all), "fault"), where)
	}
	return fault.Exit(fault.ExitFailed)
}

func gatesOf(spec *engine.Spec) int {
	n := 0
	for _, g := range spec.Gates {
		if !g.Implicit {
			n++
		}
	}
	return n
}

// specFiles returns the named files, by path or by a workflow's id; without names, all.
func specFiles(a *app, cmd *cobra.Command, args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		if strings.ContainsAny(arg, "/\\") || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			file := a.below(arg)
			switch ext := filepath.Ext(file); {
			case !layout.IsFile(file):
				return nil, noSpec(a, cmd, arg)
			case ext != ".yaml" && ext != ".yml":
				return nil, wrongKind(cmd, arg)
			}
			files = append(files, file)
			continue
		}
		p, err := a.place(cmd.Context())
		if err != nil {
			return nil, err
		}
		file, err := workflows.File(p, arg)
		if err != nil && layout.IsFile(a.below(arg)) {
			return nil, wrongKind(cmd, arg)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(args) > 0 {
		return files, nil
	}
	p, err := a.place(cmd.Context())
	if err != nil {
		return nil, err
	}
	files, err = specs.Find(p.Root)
	if err == nil && len(files) == 0 {
		err = fault.Failed("`sluice init` creates one", "%s has no spec", filepath.Join(p.Root, layout.SpecsDir))
	}
	return files, err
}

// noSpec is the fault of a file that does not exist.
func noSpec(a *app, cmd *cobra.Command, arg string) error {
	advice := "`" + cmd.CommandPath() + "` without a name reads all of " + layout.SpecsDir + "/"
	if p, err := a.place(cmd.Context()); err == nil {
		if file := filepath.Join(p.Root, layout.SpecsDir, filepath.Base(arg)); layout.IsFile(file) {
			advice = "did you mean " + layout.ShortPath(file) + "?"
		}
	}
	return fault.Failed(advice, "%s: no such file", clean(arg))
}

func wrongKind(cmd *cobra.Command, arg string) error {
	return fault.Failed("usage: "+cmd.UseLine(), "%s is no spec (.yaml) and no task file (.json)", clean(arg))
}

// below returns a path as seen from the command's folder.
func (a *app) below(path string) string {
	if a.dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

// agentNotes reports agents in the settings whose command starts something unknown, once per repo.
func agentNotes(con *console.Console, files []string) []workflows.Line {
	out, looked := []workflows.Line{}, map[string]bool{}
	for _, f := range files {
		root := filepath.Dir(filepath.Dir(filepath.Dir(f)))
		if filepath.Join(root, layout.SpecsDir) != filepath.Dir(f) || looked[root] {
			continue
		}
		looked[root] = true
		for _, f := range foreignIn(con, root) {
			out = append(out, workflows.Line{Message: f.String()})
		}
		s, err := workspace.Settings(con, root, nil)
		if err != nil {
			continue // reported as a fault
		}
		for _, name := range slices.Sorted(maps.Keys(s.Settings.Agents)) {
			if why := shells.Starts(s.Settings.Agents[name].Command, nil).Unknown; why != "" {
				out = append(out, workflows.Line{Message: fmt.Sprintf("agents.%s.command: the files it runs cannot be seen in "+
					"its text (%s): name them under `protect` of the workflows, or make it a script; "+
					"else each gate of a step that changed files other than its outputs asks a person", name, why)})
			}
		}
	}
	return out
}
