package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/setup"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs"
)

// defaultTemplate is the template of init if none is named.
const defaultTemplate = "gated-pipeline"

// initOptions are the flags of `sluice init`.
type initOptions struct {
	template      string
	list, prompts bool // only that
	choice        setup.Choice
}

func initCommand(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "create .workflow/ with a first workflow",
		Long: `Creates .workflow/ in this repo: a first spec, settings, the folders for signals and runs, and the
JSON Schema by which editors complete specs. It looks for agents on PATH and for the repo's test
command. In a terminal it asks at most three questions: who does the work and who reviews it, if
there are several agents, and what tests it, if it finds no test command that can be run; --yes takes
the defaults.
With --prompts it writes only the built-in prompts of the roles to .workflow/prompts/; files there
replace the built-in prompts. It never overwrites a file, so it can be run again.`,
		Example: "sluice init\nsluice init --template gated-pipeline\nsluice init --prompts",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i, f := range []string{"writer", "reviewer", "test"} {
				o.choice.Given[i] = cmd.Flags().Changed(f)
			}
			return initRepo(cmd.Context(), a, &o)
		},
	}
	cmd.Flags().StringVar(&o.template, "template", defaultTemplate, "begin with the shipped workflow `NAME`")
	cmd.Flags().StringVar(&o.choice.Writer, "writer", "", "the `AGENT` that does the work")
	cmd.Flags().StringVar(&o.choice.Reviewer, "reviewer", "", "the `AGENT` that reviews it")
	cmd.Flags().StringVar(&o.choice.Test, "test", "", "the `COMMAND` that runs the repo's tests")
	cmd.Flags().BoolVar(&o.list, "list", false, "list the shipped workflows")
	cmd.Flags().BoolVar(&o.prompts, "prompts", false, "write the built-in prompts of the roles, for you to change")
	cmd.MarkFlagsMutuallyExclusive("prompts", "template")
	cmd.MarkFlagsMutuallyExclusive("prompts", "list")
	return a.JSONFlag(cmd)
}

// initRepo creates the first files of the repo, after it has asked who works and what tests.
func initRepo(ctx context.Context, a *app, o *initOptions) error {
	if o.list {
		return listTemplates(&a.Console)
	}
	t, err := templateNamed(o.template)
	if err != nil {
		return err
	}
	p, err := a.bare(ctx)
	if err != nil {
		return err
	}
	if o.prompts {
		return layPrompts(&a.Console, p.Root)
	}
	if err := o.choice.For(t.Files); err != nil {
		return err
	}
	if err := o.choice.Choose(&a.Console, p.Root); err != nil {
		return err
	}
	return layOut(ctx, &a.Console, p, t, &o.choice)
}

func listTemplates(con *console.Console) error {
	type line struct {
		Name string `json:"name"`
		Line string `json:"line"`
	}
	var lines []line
	t := &console.Table{Columns: []console.Column{{}, {Fit: console.Wrapped}}}
	for _, s := range specs.Templates() {
		lines = append(lines, line{s.Name, s.Line})
		t.Row(console.Styled(s.Name, console.Bold), console.Styled(s.Line, console.Plain))
	}
	if con.JSON {
		return con.Document(lines)
	}
	con.PrintTable(t)
	return nil
}

func templateNamed(name string) (specs.Template, error) {
	var names []string
	for _, t := range specs.Templates() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	advice := text.MeantOr("`sluice init --list` names them", "--template ", name, names)
	return specs.Template{}, fault.Misused(advice, "no shipped workflow %q", clean(name))
}

func layPrompts(con *console.Console, root string) error {
	l, err := setup.Prompts(root)
	if err != nil {
		return err
	}
	if done, err := tellLaid(con, l); done || err != nil {
		return err
	}
	con.Print("\nNext:\n  edit the prompts of your roles; `sluice validate` checks them")
	return nil
}

// layOut creates the folders and files of a template, and prints what to do next.
func layOut(ctx context.Context, con *console.Console, p *workspace.Workspace, t specs.Template,
	c *setup.Choice) error {
	root := p.Root
	l, err := setup.Template(root, t, c)
	if err != nil {
		return err
	}
	if done, err := tellLaid(con, l); done || err != nil {
		return err
	}
	name := t.Name
	vars := setup.RequiredVars(filepath.Join(root, layout.SpecsDir, name+".yaml"))
	begin := "run " + name
	if name == releaseFlow {
		begin = "release"
	}
	if slices.Contains(l.Kept, layout.WorkflowDir+"/config.yaml") {
		tellRoles(con, root, t)
	} else {
		c.Roles(con)
	}
	c.Notes(con, root, begin+" --stub"+vars)
	if con.Interactive() {
		vars = "" // the run asks for them
	}
	con.Print(`
Next:
  read %s/%s.yaml and %s/config.yaml
  sluice validate
  sluice graph %s`, layout.SpecsDir, name, layout.WorkflowDir, name)
	if noCommit(ctx, p) {
		con.Print("  git add -A && git commit -m start")
	}
	con.Print("  sluice %s%s", begin, vars)
	return nil
}

// noCommit reports whether the repo is a git checkout without a commit.
func noCommit(ctx context.Context, p *workspace.Workspace) bool {
	if p.Plain {
		return false
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return false
	}
	defer repo.Close()
	head, err := repo.Head(ctx, p.Root)
	return err == nil && head == ""
}

// tellRoles names the template's roles that the kept settings lack, and who plays them.
func tellRoles(con *console.Console, root string, t specs.Template) {
	cfg, err := workspace.Settings(con, root, nil)
	files, gerr := fs.Glob(t.Files, "specs/*.yaml")
	if err != nil || gerr != nil {
		return // whoever needs the settings reports their faults
	}
	var unsaid []string
	for _, f := range files {
		spec, _ := specs.LoadFile(filepath.Join(root, layout.WorkflowDir, filepath.FromSlash(f)))
		if spec == nil {
			continue
		}
		for _, role := range workflows.Roles(spec) {
			if _, said := cfg.Settings.Roles[role]; !said && !slices.Contains(unsaid, role) {
				unsaid = append(unsaid, role)
			}
		}
	}
	if len(unsaid) > 0 {
		con.Marked("note:", layout.WorkflowDir+"/config.yaml was kept and does not name "+strings.Join(unsaid, ", ")+": "+
			strings.Join(cfg.Settings.Roles[settings.AnyRole].Agent, ", ")+
			" plays them until `roles` there names another agent")
	}
}

// tellLaid prints what was written; done reports whether that is all.
func tellLaid(con *console.Console, l *setup.Written) (done bool, err error) {
	if con.JSON {
		return true, con.Document(map[string]any{"root": l.Root, "made": list(l.Made), "kept": list(l.Kept)})
	}
	for _, f := range l.Made {
		con.Print("%s %s", con.Paint(console.Green, "made"), f)
	}
	for _, f := range l.Kept {
		con.Print("%s %s", con.Paint(console.Dim, "kept"), f)
	}
	if len(l.Made) == 0 {
		con.Print("\nEverything exists already: nothing was changed.")
	}
	return len(l.Made) == 0, nil
}
