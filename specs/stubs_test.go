package specs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/stub"
)

const stubbedSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, prompt: x}
    gate: G
  - id: B
    run: "true"
    next_step: DONE
gates:
  - id: G
    reviewer: {level: auto, agent_type: critic}
    on_pass: {next_step: B}
`

func specOf(t *testing.T, src string) *engine.Spec {
	t.Helper()
	spec, faults := Load("", []byte(src))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return spec
}

func TestStubsAreRead(t *testing.T) {
	s, faults := ReadStubs("s.yaml", []byte(`commands: real
roles:
  writer: {write: {a.txt: "one\n", b.txt: null}, takes: 2s, signal: blocked, question: which}
  "*": [{exit: 3}]
steps:
  B: [{fail: limit, reset_in: 1m}]
gates:
  G:
    - {verdict: fail, score: 12.5, scores: {security: 3}, feedback: no}
    - {say: "x", then: {answer: {a: [1, null, true]}}}
`), specOf(t, stubbedSpec))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got, err := json.Marshal(s)
	want := `{"from":"s.yaml","commands":"real","roles":{"*":[{"exit":3}],"writer":[{"write":{"a.txt":"one\n","b.txt":null},"signal":"blocked","question":"which","takes":"2s"}]},` +
		`"steps":{"B":[{"fail":"limit","reset_in":"1m0s"}]},` +
		`"gates":{"G":[{"verdict":"fail","score":12.5,"scores":{"security":3},"feedback":"no"},{"say":"x","then":[{"answer":{"a":[1,null,true]}}]}]}}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	back, err := stub.Read(got)
	if again, _ := json.Marshal(back); err != nil || string(again) != want {
		t.Errorf("read again: %v %s", err, again)
	}
}

func TestStubsFaults(t *testing.T) {
	spec := specOf(t, stubbedSpec)
	for src, want := range map[string]string{
		"":                                     "1:1: the file is empty",
		"- a":                                  "1:1: the stubs: expected a mapping",
		"rolls: {}":                            `1:1: the stubs: unknown key "rolls": did you mean "roles"?`,
		"roles: [a]":                           "1:8: roles: expected a mapping",
		"roles: {critc: {}}":                   `1:9: roles: workflow w has no role "critc" for a stub: did you mean "critic"?`,
		"steps: {C: {}}":                       `1:9: steps: workflow w has no step "C" for a stub: it has A, B`,
		"gates: {B: {}}":                       `1:9: gates: workflow w has no gate "B" for a stub: it has G`,
		"steps: {nonsense/B: {}}":              `1:9: steps: workflow w has no tasks, so "nonsense/B" is of none: did you mean "B"?`,
		"steps: {nonsense/b: {}}":              `1:9: steps: workflow w has no tasks, so "nonsense/b" is of none: did you mean "B"?`,
		"gates: {T1/G: {}}":                    `1:9: gates: workflow w has no tasks, so "T1/G" is of none: did you mean "G"?`,
		"steps: {A: []}":                       "1:12: step A: the list is empty",
		"steps: {A: [x]}":                      "1:13: step A: expected a mapping such as {verdict: pass}, found a text",
		"steps: {A: x}":                        "1:12: step A: expected a list",
		"steps: {A: {exit: -1}}":               "1:19: step A: exit: -1 is less than 0",
		"steps: {A: {exit: 256}}":              "1:19: step A: exit: want an exit code",
		"steps: {A: {fail: crush}}":            `1:19: step A: fail: unknown word "crush": did you mean "crash"?`,
		"steps: {A: {signal: ok}}":             `1:21: step A: signal: unknown word "ok"`,
		"steps: {A: {takes: 5}}":               "1:20: step A: takes: 5 has no unit",
		"steps: {A: {takes: \"${{vars.x}}\"}}": "1:20: step A: takes: expressions have no place here",
		"steps: {A: {score: much}}":            "1:20: step A: score: expected a number",
		"steps: {A: {scores: 5}}":              "1:21: step A: scores: expected a mapping",
		"steps: {A: {write: x}}":               "1:20: step A: write: expected a mapping",
		"steps: {A: {write: {/etc/x: y}}}":     `1:21: step A: write: "/etc/x" leads out of the repo`,
		"steps: {A: {write: {a/../../x: y}}}":  "leads out of the repo",
		"steps: {A: {write: {a: [b]}}}":        "1:24: step A: write: a: expected the file's text, or null",
		"steps: {A: {then: {fail: no}}}":       `step A: then: fail: unknown word "no"`,
		"commands: maybe":                      `1:11: commands: unknown word "maybe"`,
		"steps: {A: {say: x, say: y}}":         `key "say" is given twice`,
		"steps: {A: {say: " + strings.Repeat("x", engine.MaxStubs) + "}}": "1:1: it takes more than 64 KiB",
	} {
		_, faults := ReadStubs("s.yaml", []byte(src), spec)
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%.60s: %v, want %s", src, faults, want)
		}
	}
	if _, faults := LoadStubs(filepath.Join(t.TempDir(), "none.yaml"), spec); len(faults) != 1 {
		t.Error(faults)
	}
}

// TestStubsOfTasks: TASK/STEP is a step of a task's run, and no other.
func TestStubsOfTasks(t *testing.T) {
	spec := specOf(t, `
workflow: {id: w}
steps:
  - id: plan
    agent: {type: writer, prompt: x}
    next_step: work
  - id: work
    agent: {type: writer, prompt: x}
    for_each: {tasks: to-do.json}
    next_step: DONE
`)
	for src, want := range map[string]string{
		"steps: {T1/work: {}}":          "",
		"steps: {T1.2/work: {}}":        "",
		"steps: {T1/plan: {}}":          `1:9: steps: workflow w does not do step "plan" for each task: "T1/plan" is of none: did you mean "plan"?`,
		"steps: {T1/wrok: {}}":          `1:9: steps: workflow w has no step "T1/wrok" for a stub: did you mean "T1/work"?`,
		"steps: {T1/nothing: {}}":       `1:9: steps: workflow w has no step "T1/nothing" for a stub: it has plan, work`,
		"steps: {\"no task/work\": {}}": `1:9: steps: task "no task" is not an id`,
		"steps: {/work: {}}":            `1:9: steps: workflow w has no step "/work"`,
		"steps: {a/b/work: {}}":         `1:9: steps: workflow w has no step "a/b/work"`,
	} {
		_, faults := ReadStubs("s.yaml", []byte(src), spec)
		if want == "" && len(faults) != 0 || want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), want)) {
			t.Errorf("%s: %v, want %s", src, faults, want)
		}
	}
}

// TestStubsOfTasksBelow: TASK/STEP may name a step of a run further below the task.
func TestStubsOfTasksBelow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), layout.SpecsDir)
	for name, text := range map[string]string{
		"top":   "workflow: {id: top}\nsteps:\n  - {id: parts, workflow: part, for_each: {tasks: to-do.json}, next_step: DONE}\n",
		"part":  "workflow: {id: part}\nsteps:\n  - {id: code, agent: {type: w, prompt: x}, next_step: check}\n  - {id: check, workflow: check, next_step: DONE}\n",
		"check": "workflow: {id: check}\nsteps:\n  - {id: look, agent: {type: w, prompt: x}, next_step: DONE}\n",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec, faults := LoadFile(filepath.Join(dir, "top.yaml"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if _, faults := ReadStubs("s.yaml", []byte("steps: {T1/code: {}, T1/look: {}}"), spec); len(faults) > 0 {
		t.Error(faults)
	}
}

// TestStubsOfTemplates: a template's shipped script fits it.
func TestStubsOfTemplates(t *testing.T) {
	for _, tpl := range Templates() {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, ".workflow"), tpl.Files); err != nil {
			t.Fatal(err)
		}
		spec, faults := LoadFile(filepath.Join(dir, layout.SpecsDir, tpl.Name+".yaml"))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if _, faults := LoadStubs(filepath.Join(dir, layout.StubsDir, tpl.Name+".yaml"), spec); len(faults) > 0 {
			t.Errorf("%s: %v", tpl.Name, faults)
		}
	}
}
