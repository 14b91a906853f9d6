package workflows

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/specs"
)

// File returns the file of a workflow.
func File(p *workspace.Workspace, id string) (string, error) {
	files, err := specs.Find(p.Root)
	if err != nil {
		return "", err
	}
	var known []string
	for _, f := range files {
		name := ID(f)
		if name == id {
			return f, nil
		}
		known = append(known, name)
	}
	advice := "its file would be " + layout.SpecsDir + "/" + text.Line(id) + ".yaml"
	if near := text.Meant(id, known); near != "" {
		advice = "did you mean " + near + "?"
	} else if len(known) > 0 {
		advice = "there are: " + strings.Join(known[:min(len(known), 10)], ", ")
	}
	if slices.ContainsFunc(specs.Templates(), func(t specs.Template) bool { return t.Name == id }) {
		advice = "`sluice init --template " + id + "` creates it: it is a shipped workflow"
	}
	return "", fault.Failed(advice, "no workflow %q in this repo", text.Line(id))
}

// Only returns the id of the repo's only workflow.
func Only(p *workspace.Workspace) (string, error) {
	files, err := specs.Find(p.Root)
	if err != nil {
		return "", err
	}
	var known []string
	for _, f := range files {
		known = append(known, ID(f))
	}
	switch len(known) {
	case 0:
		return "", fault.Failed("`sluice init` creates a first one", "this repo has no workflow")
	case 1:
		return known[0], nil
	}
	return "", fault.Misused("there are: "+strings.Join(known[:min(len(known), 10)], ", "),
		"WORKFLOW is missing, and this repo has %d workflows", len(known))
}

// ID returns the workflow id in a file's name.
func ID(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Load reads a workflow to run or draw. It prints faults as `sluice validate` does.
func Load(con *console.Console, file string) (*engine.Spec, error) {
	spec, faults := specs.LoadFile(file)
	if len(faults) == 0 {
		return spec, nil
	}
	printFaults(con, faults)
	return nil, fault.Failed("fix the spec; `sluice validate` checks it again", "%s: %s", layout.ShortPath(file),
		text.Plural(len(faults), "fault"))
}

// Begins checks that a run of the workflow has a commit to begin from, if it needs one.
func Begins(ctx context.Context, p *workspace.Workspace, spec *engine.Spec) error {
	if spec.Workspace != engine.WorkspaceRun || p.Plain {
		return nil
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	if head, err := repo.Head(ctx, p.Root); err != nil || head != "" {
		return err
	}
	return fault.Failed("`git add -A && git commit -m start`: a run sees only what is committed",
		"this repo has no commit, and a run of %s begins from the last one", spec.ID)
}

// Uncommitted says what a run does with the changes in the checkout that are not committed; "" if
// there are none, or git cannot say. Files of .workflow/ do not count: a run reads them where they are.
func Uncommitted(ctx context.Context, p *workspace.Workspace, spec *engine.Spec) string {
	if p.Plain {
		return ""
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return ""
	}
	defer repo.Close()
	changes, err := repo.Unclean(ctx, p.Root, true)
	if err != nil {
		return ""
	}
	files := slices.DeleteFunc(changes.Files, func(f string) bool {
		return strings.HasPrefix(f, layout.WorkflowDir+"/")
	})
	if len(files) == 0 {
		return ""
	}
	words := "your checkout has " + text.Plural(len(files), "uncommitted file") + ": the run works "
	if spec.Workspace == engine.WorkspaceRun {
		return words + "in its own worktree, from the last commit, and leaves your checkout as it is"
	}
	return words + "there too, and your earlier changes do not count as its work"
}

// Ready checks that the agents of the workflow's roles can be started and that their prompts are valid.
// With stubs, it checks only the prompts.
func Ready(con *console.Console, p *workspace.Workspace, spec *engine.Spec, s settings.Settings, stubbed bool) error {
	if faults := promptFaults(p.Root, spec, s); len(faults) > 0 {
		return fault.Failed("fix the prompt; `sluice validate` checks it again", "%s%s", faults[0].Error(),
			text.More(len(faults)-1, "fault"))
	}
	if stubbed {
		return nil
	}
	for _, role := range Roles(spec) {
		for _, name := range s.Role(role).Agent {
			agent := s.Agents[name]
			if len(agent.Command) == 0 {
				continue
			}
			if _, err := agents.LookUp(agent.Command[0], con.Env, p.Root); err != nil {
				program, where := text.Line(agent.Command[0]), ""
				if errors.Is(err, agents.ErrNotExecutable) {
					return fault.Failed("`chmod +x "+program+"`, or set roles."+role+".agent in "+
						layout.WorkflowDir+"/config.yaml", "role %s: agent %s: %s: %s", role, name, program, agents.ErrNotExecutable)
				}
				if filepath.Base(program) == program {
					where = " on PATH"
				}
				return fault.Failed("install it, or set roles."+role+".agent in "+layout.WorkflowDir+"/config.yaml; `sluice run "+
					"--stub` tries the workflow without", "agent %s: no program `%s`%s", name, program, where)
			}
		}
	}
	return nil
}

// Roles returns the roles that sluice launches an agent for.
func Roles(spec *engine.Spec) []string {
	var out []string
	add := func(role string) {
		if role != "" && !slices.Contains(out, role) {
			out = append(out, role)
		}
	}
	for _, w := range spec.All() {
		for _, st := range w.Steps {
			if st.Run == nil && !st.Offered() {
				add(st.Role())
			}
		}
		for _, g := range w.Gates {
			add(g.Reviewer.AgentType)
		}
	}
	return out
}
