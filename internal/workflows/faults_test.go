package workflows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/specs"
)

// TestJudgingNotes: a text among the criteria is noted where no gate of its step asks a person or an agent.
func TestJudgingNotes(t *testing.T) {
	const steps = "workflow: {id: w, workspace: run}\nsteps:\n  - id: b\n    run: x\n    next_step: a\n  - id: a\n    run: x\n" +
		"    success_criterion: [file x exists, The plan can be followed.]\n"
	gate := func(reviewer string) string {
		return steps + "    gate: g\ngates:\n  - id: g\n    reviewer: {" + reviewer + "}\n    on_pass: {next_step: DONE}\n"
	}
	const asCommand = `step a: success_criterion "The plan can be followed.": nobody judges it: %s; write it as a command ` +
		`("CMD exits 0"), or give %s an agent_type or a person`
	for name, c := range map[string]struct{ src, want string }{
		"a command":           {gate(`level: auto, run: "true"`), fmt.Sprintf(asCommand, "gate g is a command", "the gate")},
		"a command, notified": {gate(`level: notify, run: "true"`), fmt.Sprintf(asCommand, "gate g is a command", "the gate")},
		"the step itself":     {gate("level: auto, from: step"), fmt.Sprintf(asCommand, "gate g takes the step's own report", "the gate")},
		"no gate":             {steps + "    next_step: DONE\n", fmt.Sprintf(asCommand, "the step has no gate", "the step a gate with")},
		"an agent":            {gate("level: auto, agent_type: reviewer"), ""},
		"an agent, notified":  {gate("level: notify, agent_type: reviewer"), ""},
		"a person":            {gate("level: human"), ""},
		"people at the forge": {gate("level: auto, forge: [reviews]"), ""},
		"checks at the forge": {gate("level: auto, forge: [checks]"), fmt.Sprintf(asCommand, "gate g asks for the forge's checks", "the gate")},
		"a second gate": {steps + "    gate: g\ngates:\n  - {id: g, reviewer: {level: auto, run: x}, on_pass: {next_gate: h}}\n" +
			"  - {id: h, reviewer: {level: human}, on_pass: {next_step: DONE}}\n", ""},
		"the gate of a list": {strings.Replace(gate("level: human"), "    run: x\n    success", "    run: x\n    for_each: {tasks: t.json}\n    success", 1), ""},
	} {
		file := filepath.Join(t.TempDir(), "w.yaml")
		if err := os.WriteFile(file, []byte(c.src), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, faults := specs.LoadFile(file)
		if len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		switch got := JudgingNotes(file, spec); {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %v", name, got)
		case c.want != "" && (len(got) != 1 || got[0].Message != c.want || got[0].Line != 8):
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestLawNotes: what a judge's script starts is noted if a step can change it unasked, with the gate's line. Only shell
// scripts and recipes are read, and nothing outside the repo.
func TestLawNotes(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".workflow/specs/w.yaml": "workflow: {id: w}\nsteps:\n  - {id: a, run: x, gate: g}\ngates:\n" +
			"  - {id: g, reviewer: {level: auto, run: 'ci/gate && make check'}, on_pass: {next_step: DONE}}\n",
		"ci/gate": "#!/bin/sh\ntools/check.py; ../out.sh; tools\n", "tools/check.py": "tools/other.py\n", "tools/other.py": "x\n",
		"Makefile": "deploy:\n\ttools/other.py\ncheck:\n\t@tools/made.py\n", "tools/made.py": "",
	} {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, ".workflow/specs/w.yaml")
	spec, faults := specs.LoadFile(file)
	got := LawNotes(file, spec)
	if len(faults) > 0 || len(got) != 1 || got[0].Line != 5 ||
		!strings.HasPrefix(got[0].Message, "gate g: its scripts start tools/made.py, tools/check.py, which a step can change unasked") {
		t.Errorf("%v %v", faults, got)
	}
}

// TestUnseenNotes: a gate that asks somebody is noted if the list's tasks work elsewhere than it looks.
func TestUnseenNotes(t *testing.T) {
	const src = "workflow: {id: w}\nsteps:\n  - id: a\n    agent: {type: x%s}\n    for_each: {tasks: t.json}\n    gate: g\n" +
		"gates:\n  - {id: g, reviewer: {%s}, on_pass: {next_step: DONE}}\n"
	const own = `, worktree: "wt/${{task.id}}"`
	for name, c := range map[string]struct {
		worktree, reviewer string
		noted              bool
	}{
		"a person":              {own, "level: human", true},
		"an agent":              {own, "level: auto, agent_type: y", true},
		"the list's own report": {own, "level: auto, from: step", false},
		"in the repo":           {"", "level: human", false},
		"they only look at it":  {own + ", reads: true", "level: human", false},
	} {
		file := filepath.Join(t.TempDir(), "w.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, src, c.worktree, c.reviewer), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, faults := specs.LoadFile(file)
		if len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		got := JudgingNotes(file, spec)
		if noted := len(got) == 1 && strings.Contains(got[0].Message, "its gates show no change of its tasks") && got[0].Line == 5; noted != c.noted || len(got) > 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNoFalseNotes: somebody judges each criterion of the templates, the examples and the documents' specs.
func TestNoFalseNotes(t *testing.T) {
	seen := 0
	for _, glob := range []string{"specs/templates/*/specs/*.yaml", "examples/*/.workflow/specs/*.yaml", "specs/testdata/*.yaml",
		"internal/setup/demo/*.yaml", "internal/importer/testdata/want/*/.workflow/specs/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../..", glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			spec, _ := specs.LoadFile(f)
			if spec != nil {
				seen++
			}
			for _, n := range JudgingNotes(f, spec) {
				t.Error(n)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d specs were read", seen)
	}
}
