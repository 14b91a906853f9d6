package specs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/layout"
	"sluice/tools/conform"
)

// family writes specs to a new repo and loads the named one.
func family(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, layout.SpecsDir, name+".yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, layout.SpecsDir, "w.yaml")
}

const oneChild = `workflow: {id: k, vars: {repo: {required: true}, depth: 1, mode: {default: fast, one_of: [fast, full]}, wait: 1m}}
steps:
  - {id: code, agent: {type: a, prompt: "${{vars.repo}}"}, answer: {type: object}, timeout: "${{vars.wait}}", next_step: DONE}
`

func TestChildVars(t *testing.T) {
	conform.Rule(t, "13-law children", "the types are the child's; what it does not declare, and what it requires and does not get, are load errors")
	step := func(more string) string {
		return "workflow: {id: w, vars: {need: {required: true}, given: 2m}}\nsteps:\n" +
			"  - {id: plan, agent: {type: a}, answer: {type: object}, next_step: s}\n  - {id: s, workflow: k, " + more + ", next_step: DONE}\n"
	}
	for more, want := range map[string]string{
		`vars: {repo: r, dpeth: 2}`:                         `w.yaml:4:42: step s: vars: dpeth: workflow k has no var of this name: did you mean "depth"?`,
		`vars: {repo: r, zzz: 2}`:                           `w.yaml:4:42: step s: vars: zzz: workflow k has no var of this name: it declares repo, depth, mode, wait`,
		`vars: {depth: 2}`:                                  "w.yaml:4:23: step s: workflow k requires the var repo: give it under vars beside workflow, or declare it under workflow.vars here",
		`vars: {repo: r, depth: deep}`:                      `step s: vars: depth: "deep" is not a number`,
		`vars: {repo: r, mode: fust}`:                       `"fust" is none of fast, full: did you mean "fast"?`,
		`vars: {repo: ""}`:                                  "step s: vars: repo: it is empty, and k needs it",
		`vars: {repo: "${{steps.paln.answer}}"}`:            `unknown step "paln": did you mean "plan"?`,
		`vars: {repo: r, depth: [r]}`:                       "expected a text, found a list",
		`vars: {repo: r, wait: "${{steps.plan.answer.w}}"}`: "k.yaml:3:93: step code: timeout: it is fixed when the whole run starts, and a var that it reads has its value only when this child run does",
		`vars: {repo: r}, answer: {type: object}`:           "step s: answer: beside workflow it is an expression over the names of workflow k, as steps.ID.answer: its steps have the schemas",
		`vars: {repo: r}, answer: steps.plan.answer`:        `step s: answer: unknown step "plan" (over the names of workflow k)`,
		`vars: {repo: r}, answer: steps.cod.answer`:         `step s: answer: unknown step "cod": did you mean "code"? (over the names of workflow k)`,
		`vars: {repo: r}, answer: "${{steps.code.answer}}"`: "it is an expression already: leave ${{ }} out",
		`vars: {repo: r}, answer: attempt`:                  "attempt is not known here: here are vars, run, workflow, steps, gates, task, tasks",
		`vars: {repo: r}, answer: "  "`:                     "step s: answer: the expression is empty",
	} {
		_, faults := LoadFile(family(t, map[string]string{"w": step(more), "k": oneChild}))
		if text := fmt.Sprint(faults); len(faults) != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", more, text, want)
		}
	}
	_, faults := LoadFile(family(t, map[string]string{"w": "workflow: {id: w}\nsteps:\n  - {id: s, run: x, vars: {a: b}, next_step: DONE}\n"}))
	if text := fmt.Sprint(faults); !strings.Contains(text, "3:27: step s: vars are what a child run is given: they go with workflow") {
		t.Error(text)
	}

	// Values known when the run starts are fixed in the child; all have their types, and use the
	// parent's names.
	file := family(t, map[string]string{"w": step(`vars: {repo: "${{task.repo}} of ${{vars.need}}", depth: "${{steps.plan.answer.d}}", wait: "${{vars.given}}"}, answer: "{r: vars.repo, c: steps.code.answer.x}"`), "k": oneChild})
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, faults := LoadFile(file); faults != nil {
		t.Fatal(faults)
	}
	pinned, faults := Pin(filepath.Dir(filepath.Dir(filepath.Dir(file))), "w.yaml", src, map[string]any{"need": "n", "given": "3m"})
	if faults != nil {
		t.Fatal(faults)
	}
	w, faults := Load("", pinned)
	if faults != nil {
		t.Fatal(faults)
	}
	s := w.Step("s")
	if got := s.Child.Step("code").Timeout.String(); got != "3m0s" {
		t.Errorf("the child's timeout is %s", got)
	}
	env := &engine.Env{Vars: map[string]any{"need": "n", "given": "3m"}, Task: map[string]any{"repo": "R"}, Steps: map[string]engine.StepEnv{"plan": {Answer: map[string]any{"d": 4.0}}}}
	var got []string
	for _, v := range s.ChildVars {
		x, err := v.Value.Eval(env)
		got = append(got, fmt.Sprintf("%s=%v %T %v", v.Name, x, x, err))
	}
	if all := strings.Join(got, "; "); all != "repo=R of n string <nil>; depth=4 float64 <nil>; wait=3m string <nil>" {
		t.Error(all)
	}
	env.Steps = nil
	if _, err := s.ChildVars[1].Value.Eval(env); err == nil || err.Error() != `.workflow/specs/w.yaml:4: step s: vars: depth: "" is not a number` {
		t.Error(err)
	}
	child := &engine.Env{Vars: map[string]any{"repo": "R"}, Steps: map[string]engine.StepEnv{"code": {Answer: map[string]any{"x": 1.0}}}}
	if v, err := s.ChildAnswer.Eval(child); err != nil || fmt.Sprint(v) != "map[c:1 r:R]" {
		t.Error(v, err)
	}
	child.Steps = nil
	if _, err := s.ChildAnswer.Eval(child); err == nil || err.Error() != ".workflow/specs/w.yaml:4: step s: answer: {r: vars.repo, c: steps.code.answer.x}: what it reads is not there yet" {
		t.Error(err)
	}
}

// TestChildVarsSaid: agents' values stay theirs in a child run, and in its children: they name no
// program or conversation, and are data in a task.
func TestChildVarsSaid(t *testing.T) {
	top := func(value string) string {
		return "workflow: {id: w, vars: {v: x}}\nsteps:\n  - {id: plan, agent: {type: a}, answer: {type: object}, next_step: s}\n" +
			"  - {id: s, workflow: m, vars: {v: \"" + value + "\"}, next_step: DONE}\n"
	}
	middle := "workflow: {id: m, vars: {v: make}}\nsteps:\n  - {id: s, workflow: k, next_step: DONE}\n"
	bottom := func(more string) string {
		return "workflow: {id: k, vars: {v: make}}\nsteps:\n  - {id: s, " + more + ", next_step: DONE}\n"
	}
	const said, own, when = "${{steps.plan.answer.v}}", "${{vars.v}}", "${{attempt}}"
	for _, c := range []struct{ value, step, want string }{
		{said, `run: ["${{vars.v}}"]`, "the command's name may read vars only"},
		{said, `run: ["${{vars['v']}}"]`, "the command's name may read vars only"},
		{said, `run: ["${{toJSON(vars)}}"]`, "the command's name may read vars only"},
		{said, `agent: {type: a, session: "${{vars.v}}"}`, "which conversation it speaks in is not for it to say"},
		{said, `run: [make], timeout: "${{vars.v}}"`, "it is fixed when the whole run starts"},
		{said, `run: [make, "${{vars.v}}"]`, ""},
		{own, `run: ["${{vars.v}}"]`, ""},
		{when, `agent: {type: a, session: "${{vars.v}}"}`, ""},
		{when, `run: [make], timeout: "${{vars.v}}"`, "it is fixed when the whole run starts"},
	} {
		_, faults := LoadFile(family(t, map[string]string{"w": top(c.value), "m": middle, "k": bottom(c.step)}))
		if text := fmt.Sprint(faults); (c.want == "") != (faults == nil) || !strings.Contains(text, c.want) {
			t.Errorf("%s, %s: %s, want %s", c.value, c.step, text, c.want)
		}
	}
	for value, theirs := range map[string]bool{said: true, own: false} {
		w, faults := LoadFile(family(t, map[string]string{"w": top(value), "m": middle, "k": bottom(`agent: {type: a, prompt: "do ${{vars.v}}"}`)}))
		if faults != nil {
			t.Fatal(faults)
		}
		env := &engine.Env{Vars: map[string]any{"v": "it"}, Foreign: func(source, value string) string { return "<" + source + ": " + value + ">" }}
		got, err := w.Step("s").Child.Step("s").Child.Step("s").Agent.Prompt.String(env)
		if want := map[bool]string{true: "do <vars.v: it>", false: "do it"}[theirs]; got != want || err != nil {
			t.Errorf("%s: %s %v, want %s", value, got, err, want)
		}
	}
}
