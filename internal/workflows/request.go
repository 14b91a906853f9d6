package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/stub"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/specs"
)

// Wanted is a request for a run.
type Wanted struct {
	Workflow string
	Vars     []string // NAME=VALUE
	Script   string   // the stub script; UsualScript = the workflow's own, "" = a real run
	Parallel bool     // beside a live run of the same workflow
}

// UsualScript stands for the stub script that belongs to a workflow.
const UsualScript = "the usual"

// Request reads the spec and makes the event that asks for a run of it.
func Request(ctx context.Context, con *console.Console, p *workspace.Workspace, w Wanted) (engine.RunRequested, error) {
	var ev engine.RunRequested
	file, err := File(p, w.Workflow)
	if err != nil {
		return ev, err
	}
	spec, err := Load(con, file)
	if err != nil {
		return ev, err
	}
	if err := Begins(ctx, p, spec); err != nil {
		return ev, err
	}
	given := map[string]string{}
	for _, v := range w.Vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return ev, fault.Misused("as --var goal=\"faster search\"", "--var %s: want NAME=VALUE", text.Line(v))
		}
		given[name] = value
	}
	vars, faults := specs.Vars(spec, given)
	if len(faults) > 0 {
		advice := "the spec's vars are in " + layout.ShortPath(file)
		if len(faults) == 1 {
			return ev, &fault.Error{Cause: faults[0].Error(), Advice: advice, Code: fault.ExitUsage}
		}
		for _, err := range faults { // a missing var is often a misspelt one: both are reported
			con.Note("%s", text.Message(err.Error()))
		}
		return ev, &fault.Error{Cause: "--var: " + text.Plural(len(faults), "fault"), Advice: advice, Code: fault.ExitUsage}
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return ev, err
	}
	pinned, bad := specs.Pin(p.Root, file, src, vars)
	if len(bad) > 0 {
		return ev, fault.Failed("fix the spec; `sluice validate` checks it again", "%s%s", bad[0],
			text.More(len(bad)-1, "fault"))
	}
	ev = engine.RunRequested{Workflow: spec.ID, Source: string(pinned), File: specs.Digest(src), Vars: vars,
		Parallel: w.Parallel, After: layout.Newest(p.Root, spec.ID)}
	if w.Script != "" {
		ev.Stubs, err = scriptOf(con, p, w.Script, spec)
	}
	return ev, err
}

// Missing returns the required vars that vars (NAME=VALUE) lacks. It returns none if vars has a name
// that the spec has not: that may be one of them, misspelt.
func Missing(spec *engine.Spec, vars []string) (missing []engine.Var) {
	given := map[string]bool{}
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
		if !slices.ContainsFunc(spec.Vars, func(v engine.Var) bool { return v.Name == name }) {
			return nil
		}
	}
	for _, v := range spec.Vars {
		if v.Required && !given[v.Name] {
			missing = append(missing, v)
		}
	}
	return missing
}

// AskVars asks for vars of a workflow and returns them as NAME=VALUE.
func AskVars(con *console.Console, workflow string, missing []engine.Var) (vars []string, err error) {
	for _, v := range missing {
		question := v.Name
		if v.Description != "" {
			question += " (" + v.Description + ")"
		}
		fmt.Fprintf(con.Out, "%s: ", text.Line(question))
		line, err := con.ReadLine() // what was typed before the end counts
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		if line = strings.TrimSpace(line); line == "" {
			return nil, fault.Misused(fmt.Sprintf("give it here, or as --var %s=…", v.Name),
				"nothing was started: %s needs the var %s", workflow, v.Name)
		}
		vars = append(vars, v.Name+"="+line)
	}
	return vars, nil
}

// scriptOf reads the stub script: the named file, else the workflow's own, else one in which each role
// does the least that lets the run continue.
func scriptOf(con *console.Console, p *workspace.Workspace, file string, spec *engine.Spec) ([]byte, error) {
	usual := filepath.Join(p.Root, filepath.FromSlash(layout.StubsDir), spec.ID+".yaml")
	script := &stub.Script{}
	switch {
	case file != UsualScript:
		if !layout.IsFile(file) {
			return nil, fault.Misused("--stub alone uses "+layout.StubsDir+"/"+spec.ID+".yaml, if it exists",
				"--stub=%s: no such file", text.Line(layout.ShortPath(file)))
		}
	default:
		if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
			usual = ""
		}
		file = usual
	}
	if file != "" {
		var faults []specs.Fault
		if script, faults = specs.LoadStubs(file, spec); len(faults) > 0 {
			printFaults(con, faults)
			return nil, fault.Failed("fix the stub script: docs/stubs.md lists its keys", "%s: %s", layout.ShortPath(file),
				text.Plural(len(faults), "fault"))
		}
		script.From = layout.ShortPath(file)
	}
	return json.Marshal(script)
}
