package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/prompt"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/specs"
)

// defaultTemplate is what init lays out where nobody says.
const defaultTemplate = "gated-pipeline"

// ignored is what of `.workflow/` is not for committing: what comes and goes while runs go on.
const ignored = `# What comes and goes while runs go on. Specs, settings, prompts and the audit are for committing.
/signals/
/worktrees/
/runs/
/retry-context/
/backlog/
`

func (a *app) initCommand() *cobra.Command {
	var name string
	var list, prompts bool
	var c choice
	cmd := &cobra.Command{
		Use:   "init",
		Short: "lay out .workflow/ with a first workflow",
		Long: `Makes .workflow/ in this repo: a first spec, settings, the folders that signals and runs live in,
and the JSON Schema by which editors complete specs. It looks which agents are on PATH and what
runs the repo's tests, and asks at most three questions in a terminal: who does the work, who
reviews it, what tests it. --yes takes what it found. --prompts writes the built-in prompts of the
roles to .workflow/prompts/ instead: what lies there holds in place of the built-in ones.
It never writes over a file that is there, so it can be run again.`,
		Example: "sluice init\nsluice init --template gated-pipeline\nsluice init --prompts",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return a.listTemplates()
			}
			t, err := templateNamed(name)
			if err != nil {
				return err
			}
			p, err := a.bare(cmd.Context())
			if err != nil {
				return err
			}
			if prompts {
				return a.layPrompts(p.root)
			}
			for i, f := range []string{"writer", "reviewer", "test"} {
				c.given[i] = cmd.Flags().Changed(f)
			}
			if err := c.of(t.Files); err != nil {
				return err
			}
			if err := a.choose(p.root, &c); err != nil {
				return err
			}
			return a.layOut(p.root, t, &c)
		},
	}
	cmd.Flags().StringVar(&name, "template", defaultTemplate, "the shipped workflow `NAME` to begin with")
	cmd.Flags().StringVar(&c.Writer, "writer", "", "the `AGENT` that does the work")
	cmd.Flags().StringVar(&c.Reviewer, "reviewer", "", "the `AGENT` that reviews it")
	cmd.Flags().StringVar(&c.Test, "test", "", "the `COMMAND` that runs the repo's tests")
	cmd.Flags().BoolVar(&list, "list", false, "name the shipped workflows")
	cmd.Flags().BoolVar(&prompts, "prompts", false, "write the built-in prompts of the roles, to be changed")
	cmd.MarkFlagsMutuallyExclusive("prompts", "template")
	cmd.MarkFlagsMutuallyExclusive("prompts", "list")
	return a.JSONFlag(cmd)
}

func (a *app) listTemplates() error {
	type line struct {
		Name string `json:"name"`
		Line string `json:"line"`
	}
	var lines []line
	t := &console.Table{}
	for _, s := range specs.Templates() {
		lines = append(lines, line{s.Name, s.Line})
		t.Row(console.Styled(s.Name, console.Bold), console.Styled(s.Line, console.Plain))
	}
	if a.JSON {
		return a.Document(lines)
	}
	a.PrintTable(t)
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
	mend := "`sluice init --list` names them"
	if near := text.Meant(name, names); near != "" {
		mend = "did you mean --template " + near + "?"
	}
	return specs.Template{}, fault.Misused(mend, "no shipped workflow %q", clean(name))
}

// laid is what was written below .workflow/, and what was there before.
type laid struct {
	root       string
	made, kept []string
}

// put writes a file where there is none.
func (l *laid) put(name string, data []byte) error {
	file := filepath.Join(l.root, workflowDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	err := atomicfile.WriteNew(file, data, 0o644)
	if errors.Is(err, fs.ErrExist) {
		l.kept = append(l.kept, workflowDir+"/"+name)
		return nil
	}
	if err == nil {
		l.made = append(l.made, workflowDir+"/"+name)
	}
	return err
}

// layPrompts writes the built-in prompts of roles.
func (a *app) layPrompts(root string) error {
	l := &laid{root: root}
	for _, r := range prompt.Roles() {
		if err := l.put("prompts/"+r.Name+".md", []byte(r.Text)); err != nil {
			return err
		}
	}
	if done, err := a.tellLaid(l); done || err != nil {
		return err
	}
	a.Print("\nNext:\n  change what your roles shall be told; `sluice validate` checks it")
	return nil
}

// layOut makes the folders and files of a template, and keeps what is there.
func (a *app) layOut(root string, t specs.Template, c *choice) error {
	l := &laid{root: root}
	for _, dir := range []string{"signals", "runs", "retry-context", "backlog", "audit"} {
		if err := os.MkdirAll(filepath.Join(root, workflowDir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := l.put(".gitignore", []byte(ignored)); err != nil {
		return err
	}
	if err := l.put(specs.SchemaFile, specs.Schema()); err != nil {
		return err
	}
	err := fs.WalkDir(t.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(t.Files, name)
		if err != nil {
			return err
		}
		return l.put(path.Clean(name), c.fit(path.Clean(name), data))
	})
	if err != nil {
		return err
	}
	if done, err := a.tellLaid(l); done || err != nil {
		return err
	}
	name := t.Name
	vars := requiredVars(filepath.Join(root, specsDir, name+".yaml"))
	begin := "run " + name
	if name == releaseFlow {
		begin = "push"
	}
	c.tell(a, begin+" --stub"+vars)
	if slices.Contains(l.kept, workflowDir+"/config.yaml") {
		a.tellRoles(root, t)
	}
	a.Print(`
Next:
  look at %s/%s.yaml and %s/config.yaml (who plays which role)
  sluice validate
  sluice graph %s
  sluice %s%s`, specsDir, name, workflowDir, name, begin, vars)
	return nil
}

// tellRoles names the template's roles of which the settings that were kept say nothing, and who plays them.
func (a *app) tellRoles(root string, t specs.Template) {
	cfg, err := a.settingsOf(root, nil)
	files, gerr := fs.Glob(t.Files, "specs/*.yaml")
	if err != nil || gerr != nil {
		return // what is wrong with the settings is told by who needs them
	}
	var unsaid []string
	for _, f := range files {
		spec, _ := specs.LoadFile(filepath.Join(root, workflowDir, filepath.FromSlash(f)))
		if spec == nil {
			continue
		}
		for _, role := range rolesOf(spec) {
			if _, said := cfg.Settings.Roles[role]; !said && !slices.Contains(unsaid, role) {
				unsaid = append(unsaid, role)
			}
		}
	}
	if len(unsaid) > 0 {
		a.Print("%s %s/config.yaml was kept and says nothing of %s: %s does their work, until `roles` there says who else",
			a.Paint(console.Yellow, "note:"), workflowDir, strings.Join(unsaid, ", "), strings.Join(cfg.Settings.Roles[settings.AnyRole].Agent, ", "))
	}
}

// tellLaid prints what was written; done where there is no more to be said.
func (a *app) tellLaid(l *laid) (done bool, err error) {
	if a.JSON {
		return true, a.Document(map[string]any{"root": l.root, "made": orEmpty(l.made), "kept": orEmpty(l.kept)})
	}
	for _, f := range l.made {
		a.Print("%s %s", a.Paint(console.Green, "made"), f)
	}
	for _, f := range l.kept {
		a.Print("%s %s", a.Paint(console.Dim, "kept"), f)
	}
	if len(l.made) == 0 {
		a.Print("\nEverything was there already: nothing was changed.")
	}
	return len(l.made) == 0, nil
}

// requiredVars is how a run of the spec is given what it must be given: as arguments with a place left open.
func requiredVars(file string) string {
	spec, _ := specs.LoadFile(file)
	if spec == nil {
		return ""
	}
	var b strings.Builder
	for _, v := range spec.Vars {
		if v.Required {
			b.WriteString(" --var " + v.Name + `="…"`)
		}
	}
	return b.String()
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
