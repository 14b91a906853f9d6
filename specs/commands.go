package specs

import (
	"strings"

	"sluice/engine"
	"sluice/internal/shells"
)

// command compiles a command. No value of an argument may become an option, and no value from
// agents the program.
func (c *naming) command(d commandDoc, s scope, what string) *engine.Command {
	if !d.set() {
		return nil
	}
	cmd := &engine.Command{Shell: d.shell}
	c.noValueInCode(d, what)
	for i, a := range d.argv {
		check := badArgument
		switch {
		case i == 0:
			c.programName(a, s, what)
			check = badProgram
		case strings.HasPrefix(a.value, "-"):
			check = nil
		}
		cmd.Argv = append(cmd.Argv, c.text(a, s, what, check))
	}
	return cmd
}

func badProgram(v string) string {
	if v == "" || strings.HasPrefix(v, "-") {
		return "is not a command name"
	}
	return ""
}

func badArgument(v string) string {
	if strings.HasPrefix(v, "-") {
		return "would be taken for an option: a value must not make an argument begin with -"
	}
	return ""
}

// judge compiles a command that judges or prepares judging, and records if what it runs cannot be
// determined.
func (c *naming) judge(d commandDoc, s scope, what string) *engine.Command {
	cmd := c.command(d, s, what)
	if cmd == nil {
		return nil
	}
	if why := shells.Starts(cmd.Words(), c.knownVars()).Unknown; why != "" {
		end := "else a person is asked at each gate of a step that changed files other than its outputs"
		if len(c.spec.Protect) > 0 {
			end = "nothing else of what it runs is looked at"
		}
		c.notes.at(d.node, "%s: its text does not say what it runs (%s): name that under `protect`, or make it a script "+
			"of the repo; %s", what, why, end)
	}
	return cmd
}

// knownVars returns the run's text vars that are known and from no agent.
func (c *naming) knownVars() shells.Vars {
	out := shells.Vars{}
	for name, value := range c.varsOf() {
		if text, ok := value.(string); ok && !c.world.said[name] {
			out[shells.VarName(name)] = text
		}
	}
	return out
}

// noValueInCode refuses a value in an argument that a shell or another interpreter runs as code.
func (c *naming) noValueInCode(d commandDoc, what string) {
	argv := make([]string, len(d.argv))
	for i, a := range d.argv {
		argv[i] = a.value
	}
	for _, i := range shells.CodeArgs(argv) {
		if strings.Contains(argv[i], "${{") {
			c.at(d.argv[i].node,
				"%s: ${{ }} has no place in what a program runs as code (%.20q), where a value could become a command: "+
					"read it there from the environment, as \"$NAME\" in a shell, with `env: {NAME: \"${{ … }}\"}` at the step "+
					"or $SLUICE_VAR_…", what, argv[i])
		}
	}
}

// programName ensures that the spec and the run's vars decide which program runs, never an agent.
func (c *naming) programName(t scalar, s scope, what string) {
	for _, p := range c.compiled(t, s) {
		if p.code != nil && !p.code.varsOnly() {
			c.at(t.node, "%s: the command's name may read vars only: which program runs is not for an agent to say", what)
			return
		}
	}
}
