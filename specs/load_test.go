package specs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

func example(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestTheDocumentsExample: document 004's annotated example loads, byte for byte.
func TestTheDocumentsExample(t *testing.T) {
	conform.Rule(t, "004 §3 example.loads", "byte for byte")
	conform.Rule(t, "004 §3 YAML", "one YAML file")
	conform.Rule(t, "004 §5 question 1", "the document's own YAML is the format")
	spec, faults := Load("phase-4-search-index.yaml", example(t))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if len(spec.Steps) != 2 || len(spec.Gates) != 2 || spec.Gates[1].OnPass[0] != "DONE" {
		t.Errorf("read as %+v", spec)
	}
}

// describe returns the comparable form of a spec: its functions by their sources.
func describe(s *engine.Spec) any {
	b, err := json.Marshal(struct {
		ID, Name, Description string
		ContextFiles, Protect []string
		Vars                  []engine.Var
		Limits                engine.Limits
		Needs                 []engine.Need
		AfterStep, AfterRun   *engine.Command
		Steps                 []*engine.Step
		Gates                 []*engine.Gate
	}{s.ID, s.Name, s.Description, s.ContextFiles, s.Protect, s.Vars, s.Limits, s.Needs, s.AfterStep, s.AfterRun, s.Steps, s.Gates})
	if err != nil {
		panic(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		panic(err)
	}
	return v
}

// TestSignalValues: each type of signal has a value.
func TestSignalValues(t *testing.T) {
	conform.Rule(t, "13-law 004 value", "`signal.value` for all four types")
	spec, faults := Load("w.yaml", []byte(`
workflow: {id: w}
steps:
  - {id: a, run: x, signal: {type: sentinel_file, value: .workflow/signals/x.json}, next_step: b}
  - {id: b, run: x, signal: {type: git_commit, value: "[B]"}, next_step: c}
  - {id: c, run: x, signal: {type: pr_creation, value: feature/c}, next_step: d}
  - {id: d, run: x, signal: {type: stdout_exit, value: 0}, next_step: DONE}
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for id, want := range map[string]string{"a": ".workflow/signals/x.json", "b": "[B]", "c": "feature/c", "d": ""} {
		if got := spec.Step(id).Signal.Value; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// TestTheDocumentsValues: each key of document 004's schema is read as documented, in its annotated
// example and in a spec with the keys missing there.
func TestTheDocumentsValues(t *testing.T) {
	conform.Rule(t, "004 §3 example.values", "each of them")
	conform.Rule(t, "004 §3 workflow", "id, name, description, context_files of the example")
	conform.Rule(t, "004 §3 step", "each key")
	conform.Rule(t, "004 §3 gate", "each key")
	conform.Rule(t, "004 §3 reviewer.level", "the three, and two others")
	conform.Rule(t, "004 §2 Step.agent", "type, launch, worktree and context are read")
	spec, faults := Load("phase-4-search-index.yaml", example(t))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	same := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	sources := func(texts []engine.Text) (out []string) {
		for _, x := range texts {
			out = append(out, x.Source)
		}
		return out
	}
	same("workflow", []any{spec.ID, spec.Name, spec.ContextFiles}, []any{"phase-4-search-index", "Implement search index module", []string{"phase-4/CLAUDE.md", "docs/plans/phase-4-plan.md"}})
	same("description", strings.Join(strings.Fields(spec.Description), " "), "Write tests for the search index interface, review them, implement the module, then verify the implementation passes all tests.")
	for id, want := range map[string]struct {
		name, role, file, cmd string
		inputs, outputs       []string
		gate                  string
	}{
		"X-1": {"write-tests", "test-writer", "test/test_index.py", "", []string{"docs/plans/phase-4-plan.md", "phase-4/CLAUDE.md", ".workflow/retry-context/XG-1-2-*.md"}, []string{"test/test_index.py"}, "XG-1-2"},
		"X-2": {"implement", "implementor", "", "pixi run test", []string{"test/test_index.py", "phase-4/CLAUDE.md", ".workflow/retry-context/XG-2-end-*.md"}, []string{"src/chatcat/index.py", "src/chatcat/search.py"}, "XG-2-end"},
	} {
		s := spec.Step(id)
		same(id, []any{s.Name, s.Agent.Type, s.Agent.Launch, s.Agent.Worktree.Source, sources(s.Inputs), s.Gates}, []any{want.name, want.role, engine.LaunchHeadless, "phase-4/", want.inputs, []string{want.gate}})
		same(id+" signal", s.Signal, engine.Signal{Type: engine.SignalFile, Value: ".workflow/signals/" + id + "-done.json"})
		var outputs []string
		for _, o := range s.Outputs {
			outputs = append(outputs, o.Path.Source)
		}
		same(id+" outputs", outputs, want.outputs)
		c := s.Criteria[0]
		same(id+" criterion", []any{len(s.Criteria), c.File, c.NonEmpty, c.Text}, []any{1, want.file, want.file != "", ""})
		if (c.Command != nil) != (want.cmd != "") || c.Command != nil && c.Command.Shell != want.cmd {
			t.Errorf("%s: the criterion runs %+v, want %q", id, c.Command, want.cmd)
		}
	}
	for id, want := range map[string][]any{
		"XG-1-2":   {"review-tests", "X-1", "notify", "reviewer", []string{"X-2"}, "X-1", ".workflow/retry-context/XG-1-2-attempt-{n}.md", 2},
		"XG-2-end": {"review-implementation", "X-2", "human", "", []string{"DONE"}, "X-2", ".workflow/retry-context/XG-2-end-attempt-{n}.md", 3},
	} {
		g := spec.Gate(id)
		same(id, []any{g.Name, g.Step, g.Reviewer.Level, g.Reviewer.AgentType, g.OnPass, g.OnFail, g.RetryContext, g.MaxRetries}, want)
	}
	const other = `
workflow: {id: w}
steps:
  - {id: a, agent: {type: planner, launch: LAUNCH, worktree: wt, context: [docs/a.md, b.md]}, signal: {type: SIGNAL}, gate: g}
gates:
  - {id: g, reviewer: {level: LEVEL, agent_type: r}, on_pass: {next_step: DONE}, on_fail: {next_step: a}}
`
	with := func(launch, signal, level string) (*engine.Spec, []Fault) {
		return Load("", []byte(strings.NewReplacer("LAUNCH", launch, "SIGNAL", signal, "LEVEL", level, ", agent_type: r", map[bool]string{true: "", false: ", agent_type: r"}[level == "human"]).Replace(other)))
	}
	for _, launch := range []string{"interactive", "headless", "subagent"} {
		for _, signal := range []string{"sentinel_file", "git_commit", "pr_creation", "stdout_exit"} {
			if launch != "headless" && signal == "stdout_exit" {
				continue // nothing is launched whose exit could be seen
			}
			s, faults := with(launch, signal, "auto")
			if len(faults) > 0 {
				t.Fatal(launch, signal, faults)
			}
			a := s.Step("a")
			same("step", []any{a.Agent.Launch, a.Signal.Type, a.Agent.Worktree.Source, a.Agent.Context}, []any{launch, signal, "wt", []string{"docs/a.md", "b.md"}})
		}
	}
	for level, good := range map[string]bool{"auto": true, "notify": true, "human": true, "Auto": false, "agent": false} {
		if _, faults := with("headless", "stdout_exit", level); (len(faults) == 0) != good {
			t.Errorf("level %s: %v", level, faults)
		}
	}
	for _, bad := range [][3]string{{"background", "stdout_exit", "auto"}, {"headless", "email", "auto"}} {
		if _, faults := with(bad[0], bad[1], bad[2]); len(faults) == 0 {
			t.Errorf("taken: %v", bad)
		}
	}
}
