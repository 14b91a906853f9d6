package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/settings"
	"sluice/internal/shells"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/specs"
)

func validateCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "validate [SPEC|TASKS.json...]",
		Short: "tell everything that is wrong with the specs, or with a task file",
		Long: `Reads specs, the settings of their repo, the prompts of their roles and the scripts of their
stand-ins, as a run would, and prints all faults at once, each as file:line:col: message.
SPEC is a file or a workflow's id; without any, all of .workflow/specs/ are read. Of a task file,
which ends in .json, it tells the first fault: no JSON, a doubled id, a dependency that is not
there, a cycle.
Run it after each edit, and in CI: it exits 1 if there is a fault. A note is none: it names a
command of a gate, criterion, hook or agent of which it cannot be told what of the repo it runs, a
criterion that a machine could check if it were written so, and steps that are ready at once and
work in one folder.`,
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

// faultLine is a fault of a spec as --json prints it.
type faultLine struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
}

// String is the fault as a line: without what is not known of its place.
func (f faultLine) String() string {
	switch {
	case f.File == "":
		return clean(f.Message)
	case f.Col == 0:
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, clean(f.Message))
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, clean(f.Message))
}

// validateFiles tells the faults of specs and task files. every says that the specs are all there are: then what belongs to none
// is told too.
func validateFiles(a *app, files, taskFiles []string, every bool) error {
	all, said := []faultLine{}, map[specs.Fault]bool{}
	tell := func(more []faultLine) {
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
	before := len(all)
	tell(settingsFaultsOf(&a.Console, files))
	settingsFaults := len(all) - before
	if every {
		tell(strayStubs(files))
	}
	notes := agentNotes(&a.Console, files)
	for _, f := range files {
		spec, faults := specs.LoadFile(f)
		for _, x := range specs.Notes(f) {
			notes = append(notes, faultLine{layout.ShortPath(x.File), x.Line, x.Col, x.Message})
		}
		faults = append(faults, stubFaultsOf(f, spec)...)
		for _, x := range promptFaultsOf(&a.Console, f, spec) {
			if !said[x] { // specs share their roles
				said[x] = true
				faults = append(faults, x)
			}
		}
		for _, x := range faults {
			all = append(all, faultLine{layout.ShortPath(x.File), x.Line, x.Col, x.Message})
		}
		if a.JSON {
			continue
		}
		for _, x := range faults {
			a.Print("%s:%d:%d: %s", layout.ShortPath(x.File), x.Line, x.Col, clean(x.Message))
		}
		if len(faults) == 0 {
			a.Print("%s %s: %s, %s", a.Paint(console.Green, "ok"), layout.ShortPath(f), plural(len(spec.Steps), "step"), plural(gatesOf(spec), "gate"))
		}
	}
	for _, x := range notes {
		if !a.JSON {
			a.Print("%s %s", a.Paint(console.Yellow, "note"), x)
		}
	}
	if a.JSON {
		if err := a.Document(map[string]any{"ok": len(all) == 0, "files": len(files) + len(taskFiles), "faults": all, "notes": notes}); err != nil {
			return err
		}
	} else if len(all) > 0 {
		where := plural(len(files)+len(taskFiles), "file")
		if settingsFaults > 0 {
			where += " and the settings"
		}
		a.Note("%s in %s", plural(len(all), "fault"), where)
	}
	if len(all) > 0 {
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

// settingsFaultsOf are the faults of the settings of the repos that the specs lie in, each repo looked at once.
func settingsFaultsOf(con *console.Console, files []string) []faultLine {
	var out []faultLine
	looked := map[string]bool{}
	for _, f := range files {
		root := filepath.Dir(filepath.Dir(filepath.Dir(f)))
		if filepath.Join(root, layout.SpecsDir) != filepath.Dir(f) || looked[root] {
			continue
		}
		looked[root] = true
		if _, err := workspace.Settings(con, root, nil); err != nil {
			for _, one := range settings.Faults(err) {
				out = append(out, lineOf(one))
			}
		}
	}
	return out
}

// agentNotes tells of which agents of the settings it cannot be told what their command starts, each repo looked at once.
func agentNotes(con *console.Console, files []string) []faultLine {
	out, looked := []faultLine{}, map[string]bool{}
	for _, f := range files {
		root := filepath.Dir(filepath.Dir(filepath.Dir(f)))
		if filepath.Join(root, layout.SpecsDir) != filepath.Dir(f) || looked[root] {
			continue
		}
		looked[root] = true
		for _, f := range foreignIn(con, root) {
			out = append(out, faultLine{Message: f.String()})
		}
		s, err := workspace.Settings(con, root, nil)
		if err != nil {
			continue // told as a fault
		}
		for _, name := range slices.Sorted(maps.Keys(s.Settings.Agents)) {
			if why := shells.Starts(s.Settings.Agents[name].Command, nil).Unknown; why != "" {
				out = append(out, faultLine{Message: fmt.Sprintf("agents.%s.command: what it runs cannot be told from its text (%s): name what of the repo it runs under `protect` of the workflows, or make it a script; "+
					"else a person is asked at each gate of a step that changed files other than its outputs", name, why)})
			}
		}
	}
	return out
}

// stubFaultsOf are the faults of the script of the workflow's stand-ins, where there is one.
func stubFaultsOf(file string, spec *engine.Spec) []specs.Fault {
	script := stubsOf(file)
	if spec == nil || !layout.IsFile(script) {
		return nil
	}
	_, faults := specs.LoadStubs(script, spec)
	return faults
}

// stubsOf is where the script of a workflow's stand-ins lies; "" of a spec that lies in no .workflow.
func stubsOf(file string) string {
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if filepath.Join(root, layout.SpecsDir) != filepath.Dir(file) {
		return ""
	}
	return filepath.Join(root, filepath.FromSlash(specs.StubsDir), workflowOf(file)+".yaml")
}

// strayStubs are the scripts of stand-ins that belong to no workflow: a slip of the pen in their names, mostly. What ends in
// neither .yaml nor .yml is none.
func strayStubs(files []string) (out []faultLine) {
	var known, ids []string
	dir := ""
	for _, f := range files {
		if s := stubsOf(f); s != "" {
			dir, known, ids = filepath.Dir(s), append(known, s), append(ids, workflowOf(f))
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil { // there are none
		return nil
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue // a .gitkeep, a README, what an editor left
		}
		if s := filepath.Join(dir, e.Name()); e.Type().IsRegular() && !slices.Contains(known, s) {
			out = append(out, faultLine{layout.ShortPath(s), 1, 1, "no workflow has this script of stand-ins: it bears the workflow's id and .yaml, or lies elsewhere" + text.DidYouMean(workflowOf(s), ids)})
		}
	}
	return out
}

// lineOf is an error as validate prints it, with its place where it has one.
func lineOf(err error) faultLine {
	var f *fault.Error
	if !errors.As(err, &f) || f.Line == 0 {
		return faultLine{Message: err.Error()}
	}
	bare := &fault.Error{Cause: f.Cause, Advice: f.Advice}
	return faultLine{f.File, f.Line, f.Col, bare.Error()}
}

// promptFaultsOf are the faults of the prompts of a spec's roles, by the settings of its repo.
func promptFaultsOf(con *console.Console, file string, spec *engine.Spec) []specs.Fault {
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if spec == nil || filepath.Join(root, layout.SpecsDir) != filepath.Dir(file) {
		return nil
	}
	s, err := workspace.Settings(con, root, nil)
	if err != nil {
		return nil // the faults of the settings are told
	}
	var out []specs.Fault
	for _, err := range promptFaults(root, spec, s.Settings) {
		f := specs.Fault{File: file, Line: 1, Col: 1, Message: err.Error()}
		var of prompt.Fault
		if errors.As(err, &of) {
			f = specs.Fault{File: of.File, Line: of.Line, Col: of.Col, Message: of.Message}
		}
		out = append(out, f)
	}
	return out
}

// gatesOf counts the gates that the spec itself has.
func gatesOf(spec *engine.Spec) int {
	n := 0
	for _, g := range spec.Gates {
		if !g.Implicit {
			n++
		}
	}
	return n
}

// specFiles returns the files that are meant: by path, or by a workflow's id; all of them where none is named.
func specFiles(a *app, cmd *cobra.Command, args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		if strings.ContainsAny(arg, "/\\") || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			file := a.below(arg)
			if !layout.IsFile(file) {
				return nil, fault.Failed("`sluice validate` without a name reads all of "+layout.SpecsDir+"/", "%s: no such file", clean(arg))
			}
			files = append(files, file)
			continue
		}
		p, err := a.place(cmd.Context())
		if err != nil {
			return nil, err
		}
		file, err := specOf(p, arg)
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
		err = fault.Failed("`sluice init` makes a first one", "%s: no spec in it", filepath.Join(p.Root, layout.SpecsDir))
	}
	return files, err
}

// below is a path as seen from the folder that the command is about.
func (a *app) below(path string) string {
	if a.dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

// specOf finds the file of a workflow.
func specOf(p *workspace.Workspace, id string) (string, error) {
	files, err := specs.Find(p.Root)
	if err != nil {
		return "", err
	}
	var known []string
	for _, f := range files {
		name := workflowOf(f)
		if name == id {
			return f, nil
		}
		known = append(known, name)
	}
	mend := "its file would be " + layout.SpecsDir + "/" + clean(id) + ".yaml"
	if near := text.Meant(id, known); near != "" {
		mend = "did you mean " + near + "?"
	} else if len(known) > 0 {
		mend = "there are: " + strings.Join(known[:min(len(known), 10)], ", ")
	}
	if _, err := templateNamed(id); err == nil {
		mend = "`sluice init --template " + id + "` lays it out: it is a shipped one"
	}
	return "", fault.Failed(mend, "no workflow %q in this repo", clean(id))
}

func workflowOf(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// loadSpec reads a workflow that is to be run or drawn; its faults are told as validate tells them.
func loadSpec(con *console.Console, file string) (*engine.Spec, error) {
	spec, faults := specs.LoadFile(file)
	if len(faults) == 0 {
		return spec, nil
	}
	for _, x := range faults {
		fmt.Fprintf(con.Err, "%s:%d:%d: %s\n", layout.ShortPath(x.File), x.Line, x.Col, clean(x.Message))
	}
	return nil, fault.Failed("mend the spec; `sluice validate` checks it again", "%s: %s", layout.ShortPath(file), plural(len(faults), "fault"))
}
