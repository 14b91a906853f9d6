//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/fault"
)

// agentsOnPath puts programs of these names, and otherwise only what sluice itself starts, on the world's PATH.
func (w *playground) agentsOnPath(names ...string) string {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.dir), "path")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("#!/bin/sh\n"), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, n := range []string{"git", "sh", "env", "stty", "python3"} {
		if at, err := exec.LookPath(n); err == nil {
			if err := os.Symlink(at, filepath.Join(dir, n)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.env = append(w.env, "PATH="+dir)
	return dir
}

func (w *playground) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// TestInitFinds: without questions init takes the agents and the tests that it finds, in consistent
// files; it reports what is missing and what to do.
func TestInitFinds(t *testing.T) {
	for _, c := range []struct {
		name     string
		agents   []string
		file     [2]string
		also     string // another file
		args     []string
		writer   string
		reviewer string
		test     string
		says     string
	}{
		{name: "both", agents: []string{"claude", "codex"}, file: [2]string{"go.mod", "module x\n"}, writer: "claude", reviewer: "codex", test: `"go test ./..."`, says: "found claude, codex on PATH: claude does the work, codex reviews it"},
		{name: "one", agents: []string{"codex"}, file: [2]string{"Makefile", "all:\n\ntest: all\n\tgo $(X)\n"}, writer: "codex", reviewer: "codex", test: `"make test"`, says: "found codex on PATH: codex does the work and reviews it"},
		{name: "the first that runs", agents: []string{"claude", "uv"}, file: [2]string{"uv.lock", ""}, also: "pyproject.toml", writer: "claude", reviewer: "claude", test: `"uv run pytest"`, says: "`uv run pytest` tests the work"},
		{name: "other", agents: []string{"gemini"}, file: [2]string{"package.json", `{"scripts": {"test": "vitest"}}`}, writer: "gemini", reviewer: "gemini", test: `"npm test"`},
		{name: "none", file: [2]string{"package.json", `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, writer: "claude", reviewer: "claude", test: `"true"`, says: "no agent on PATH"},
		{name: "not installed", agents: []string{"claude"}, file: [2]string{"pyproject.toml", ""}, writer: "claude", reviewer: "claude", test: `"pytest"`, says: "there is no pytest to run: install it"},
		{name: "unittest", agents: []string{"claude"}, file: [2]string{"test_words.py", "import unittest\n"}, writer: "claude", reviewer: "claude", test: `"python3 -m unittest"`},
		{name: "pytest alone", agents: []string{"claude", "pytest"}, file: [2]string{"test_words.py", "def test_it(): pass\n"}, writer: "claude", reviewer: "claude", test: `"pytest"`, says: "`pytest` tests the work"},
		{name: "said", agents: []string{"claude"}, file: [2]string{"go.mod", ""}, args: []string{"--writer", "codex", "--reviewer", "claude", "--test", `sh -c "exit $X"`}, writer: "codex", reviewer: "claude", test: `"sh -c \"exit $X\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, true)
			w.agentsOnPath(c.agents...)
			w.write(c.file[0], c.file[1])
			if c.also != "" {
				w.write(c.also, "")
			}
			code, out, errs := w.sluice(append([]string{"init"}, c.args...)...)
			if code != 0 || !strings.Contains(out, "sluice run gated-pipeline") || !strings.Contains(out+errs, c.says) {
				t.Fatalf("%d %s %s", code, out, errs)
			}
			config, spec := w.read(".workflow/config.yaml"), w.read(".workflow/specs/gated-pipeline.yaml")
			for _, want := range []string{"implementor: {agent: " + c.writer + "}", "test-writer: {agent: " + c.writer + "}", "reviewer: {agent: " + c.reviewer + "}"} {
				if !strings.Contains(config, want) {
					t.Errorf("config lacks %q:\n%s", want, config)
				}
			}
			if !strings.Contains(spec, "test: {default: "+c.test+", ") {
				t.Errorf("the spec has not %s:\n%s", c.test, spec)
			}
			if code, out, errs := w.sluice("validate"); code != 0 {
				t.Errorf("validate: %s %s", out, errs)
			}
			if _, err := w.settings(); err != nil {
				t.Error(err)
			}
		})
	}
	w := newWorld(t, true)
	if code, _, errs := w.sluice("init", "--writer", "cluade"); code != fault.ExitUsage || !strings.Contains(errs, "did you mean claude?") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestInitAsks: in a terminal with two agents there are three questions; a name that is none is asked for again.
func TestInitAsks(t *testing.T) {
	w := newWorld(t, true)
	path := w.agentsOnPath("claude", "codex")
	win := w.inTerminal(110, 40, "env PATH="+path+" "+filepath.Join(binDir(t), "sluice")+" init")
	win.sees(`^Which agent does the work\? claude, codex \[claude\]`)
	win.types("codx", "Enter")
	win.sees(`no agent "codx" here: did you mean codex\?`)
	win.types("codex", "Enter")
	win.sees(`^Which agent reviews it\? claude, codex \[claude\]`)
	win.types("Enter")
	win.sees(`^Which command tests this repo\? *$`)
	win.types("go vet ./...", "Enter")
	win.sees(`^  sluice run gated-pipeline$`)
	win.sees(`^rc=0`)
	if config := w.read(".workflow/config.yaml"); !strings.Contains(config, "implementor: {agent: codex}") || !strings.Contains(config, "reviewer: {agent: claude}") {
		t.Error(config)
	}
	if spec := w.read(".workflow/specs/gated-pipeline.yaml"); !strings.Contains(spec, `default: "go vet ./..."`) {
		t.Error(spec)
	}
	w = newWorld(t, true)
	w.write("go.mod", "module x\n")
	path = w.agentsOnPath("claude", "go")
	win = w.inTerminal(110, 40, "env PATH="+path+" "+filepath.Join(binDir(t), "sluice")+" init")
	if last := win.sees(`^rc=0`); strings.Contains(last, "?") || !strings.Contains(last, "`go test ./...` tests the work") {
		t.Errorf("where one agent and tests are found:\n%s", last)
	}
	w = newWorld(t, true)
	w.write("pyproject.toml", "")
	path = w.agentsOnPath("claude")
	win = w.inTerminal(80, 24, "env PATH="+path+" "+filepath.Join(binDir(t), "sluice")+" init")
	win.sees("^note: `pytest` is to test this repo, and there is no pytest to run: install it,\n(or name )?another command\n")
	win.sees(`^Which command tests this repo\? \[pytest\]`)
	win.types("sh test.sh", "Enter")
	if last := win.sees(`^rc=0`); !strings.Contains(w.read(".workflow/specs/gated-pipeline.yaml"), `default: "sh test.sh"`) {
		t.Error(last)
	}
}

// TestRunAsksForVars: in a terminal, `sluice run` after `sluice init` asks for the var that is
// missing; without an answer nothing is started.
func TestRunAsksForVars(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/specs/w.yaml", `workflow: {id: w, vars: {goal: {required: true, description: what to reach}}}
steps: [{id: A, run: [echo, "${{vars.goal}}"], next_step: DONE}]
`)
	sluice := filepath.Join(binDir(t), "sluice")
	win := w.inTerminal(110, 40, sluice+" run; echo none; "+sluice+" run")
	win.sees(`^goal \(what to reach\):`)
	win.types("Enter")
	win.sees(`nothing was started: w needs the var goal`)
	win.sees(`^none\n(?s:.*)goal \(what to reach\):`)
	win.types("a red house", "Enter")
	win.sees(`^w-1 completed`)
	win.sees(`^rc=0`)
	if code, _, errs := w.sluice("run", "w"); code != fault.ExitUsage || !strings.Contains(errs, "w needs the var goal (what to reach): give it as --var goal=") {
		t.Errorf("without a terminal: %d %s", code, errs)
	}
}
