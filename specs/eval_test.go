package specs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/text"
	"sluice/tools/conform"
)

// someEnv is what a gate's expressions see in these tests.
func someEnv() *engine.Env {
	return &engine.Env{
		Run: "w-1", Workflow: "w", Step: "X-1", Attempt: 2, Gate: "G",
		Vars: map[string]any{"n": 5.0},
		Steps: map[string]engine.StepEnv{
			"X-1": {Answer: map[string]any{"plan": "p", "n": 1.5, "commands": []any{map[string]any{"cmd": "ls"}, map[string]any{"cmd": "rm", "destructive": true}}}, Status: "passed", Attempt: 2, Stdout: "out"},
			"b":   {Status: "running", Attempt: 1},
		},
		Gates:  map[string]engine.GateEnv{"G": {Verdict: "pass", Score: 80.0, Feedback: "well"}},
		Answer: map[string]any{"status": "passed", "big": strings.Repeat("x", 60_000)},
		Score:  70.0, Scores: map[string]any{"security": 60.0}, Findings: []any{1.0, 2.0}, Failures: 1, Exhausted: true,
	}
}

// world of these tests.
func someWorld() *world {
	return &world{
		vars: []varDoc{{Var: engine.Var{Name: "n", Default: 3.0}}, {Var: engine.Var{Name: "mode", Default: "full"}},
			{Var: engine.Var{Name: "on", Default: true}}, {Var: engine.Var{Name: "goal", Required: true}}},
		steps: []string{"X-1", "b", "c"}, gates: []string{"G"},
	}
}

func compiled(t *testing.T, src string, m mode) *program {
	t.Helper()
	p, faults := someWorld().compile(src, inGate, m, func(string, []string) string { return "" })
	if p == nil {
		t.Fatalf("%s: %v", src, faults)
	}
	return p
}

// TestConditions: values of conditions; a missing value is an error.
func TestConditions(t *testing.T) {
	conform.Rule(t, "1-language values", "what conditions give")
	conform.Rule(t, "1-language values.missing", "what is not there yet is an error in a condition")
	for src, want := range map[string]string{
		`true`:                                "true",
		`vars.mode == "full" and vars.on`:     "true",
		`vars.n >= 5`:                         "true",
		`score >= 70 && scores.security < 70`: "true",
		`len(findings) > 1`:                   "true",
		`exhausted and failures + 1 >= 2`:     "true",
		`any(steps["X-1"].answer.commands, .destructive != false)`: "true",
		`steps["X-1"].answer.missing == nil`:                       "true",
		`steps.b.answer == nil`:                                    "true",
		`all(["a", "b"], # in ["a"])`:                              "false",
		`gates.G.verdict == "pass" and gates["G"].score > 79`:      "true",
		`let x = steps["X-1"].attempt; x == 2`:                     "true",
		`steps.c.status == "passed"`:                               "it reads is not there yet",
		`steps.b.answer.x == 1`:                                    "it reads is not there yet",
		`vars.goal.x == 1`:                                         "",
		`answer.status`:                                            "a condition gives true or false, this one gave a text",
		`score >= answer.status`:                                   "invalid operation",
		`answer.big + answer.big == ""`:                            "false",
		`answer.status + 1 == 2`:                                   "+ adds two numbers or two texts",
		`any(1..999, any(1..999, any(1..999, # < 0)))`:             "the expression took",
		`len(reduce(1..100, #acc + #acc, "xxxxxxxx")) > 0`:         "more than 1 MiB",
		`len(replace(answer.big, "x", answer.big)) > 0`:            "more than 1 MiB",
		`len(repeat("x", 1e9)) > 0`:                                "repeat takes",
		`len(join(map(1..100, answer.big))) > 0`:                   "more than 1 MiB",
		`len(toJSON(map(1..100, answer))) > 0`:                     "more than 1 MiB",
		`len(1..1000000000) > 0`:                                   "memory budget",
		`failures / 4 == 0.25 and 7 / 2 == 3.5`:                    "true",
		`3 / 0 >= 0.9`:                                             "a division by 0", // as of 3 passed of 0 tests
		`score / (vars.n - 5) >= 0.9`:                              "a division by 0",
		`not (len("") / 0.0 > 0.1)`:                                "a division by 0", // 0 of 0
		`map([0, 1], 1 / #)[1] == 1`:                               "a division by 0",
	} {
		began := time.Now()
		got, err := compiled(t, src, asCond).condition(someEnv())
		said := fmt.Sprint(got)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) || want == "" && err == nil {
			t.Errorf("%s: %s, not %s", src, said, want)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s took %v", src, took)
		}
	}
	empty := &engine.Env{}
	for _, src := range []string{`score >= 70`, `answer.status == "x"`, `scores.a > 1`, `len(findings) > 1`, `gates.G.verdict == "pass"`} {
		if _, err := compiled(t, src, asCond).condition(empty); err == nil || err.Error() != errNotYet.Error() {
			t.Errorf("%s of nothing: %v", src, err)
		}
	}
}

// TestTexts: values in texts; a missing value is empty.
func TestTexts(t *testing.T) {
	conform.Rule(t, "1-language values.missing", "what is not there yet is empty in a text")
	for src, want := range map[string]string{
		`run`: "w-1", `attempt`: "", `vars.n`: "5", `vars.n + 1`: "6", `vars.on`: "true", `steps["X-1"].answer.plan`: "p",
		`steps["X-1"].answer.n`: "1.5", `steps.c.answer.a.b.c`: "", `steps.b.answer.plan`: "", `vars.goal`: "",
		`join(map(steps.c.answer.commands, .cmd), " ")`:       "",
		`join(map(steps["X-1"].answer.commands, .cmd), "\n")`: "ls\nrm", `steps["X-1"].answer.commands[0]`: `{"cmd":"ls"}`,
		`steps["X-1"].answer?.none?.more`: "", `steps.c.answer ?? "none"`: "none", `gates.G.feedback`: "well", `"<a> & b"`: "<a> & b", `["<a>"]`: `["<a>"]`,
		`upper(vars.mode) + string(vars.n)`: "FULL5", `12345678901.0`: "12345678901",
	} {
		if src == `attempt` {
			continue // a step's, not a gate's
		}
		got, err := compiled(t, src, asText).printed(someEnv())
		if err != nil || got != want {
			t.Errorf("%s gives %q, %v, not %q", src, got, err, want)
		}
	}
}

// TestArguments: no value becomes an option, a program, another folder, or an agent's word in a
// place of the engine's.
func TestArguments(t *testing.T) {
	conform.Rule(t, "1-language values.dash", "no argument comes to begin with -")
	s := loaded(t, `
workflow: {id: w, vars: {v: x, prog: make}}
steps:
  - id: a
    run: ["${{vars.prog}}", "${{vars.v}}", "-${{vars.v}}", "a${{vars.v}}"]
    env: {E: "${{vars.v}}"}
    inputs: ["${{vars.v}}"]
    outputs: ["out/${{vars.v}}", {"${{vars.v}}": run}]
    agent: {worktree: "trees/${{vars.v}}", branch: "${{vars.v}}"}
    next_step: DONE
`)
	a := s.Steps[0]
	for v, want := range map[string][]bool{ // argument, output path, written output, worktree, branch
		"x":                        {true, true, true, true, true},
		"-rf":                      {false, true, true, true, false},
		"../../x":                  {true, false, false, false, false},
		"/etc/passwd":              {true, true, false, true, false},
		"b\x00":                    {false, false, false, false, false},
		".git/config":              {true, false, false, false, true},
		".workflow/signals/G-pass": {true, true, false, true, true},
		".Workflow/./specs/w.yaml": {true, true, false, true, true},
	} {
		env := &engine.Env{Vars: map[string]any{"v": v}}
		for i, text := range []engine.Text{a.Run.Argv[1], a.Outputs[0].Path, a.Outputs[1].Path, a.Agent.Worktree, a.Agent.Branch} {
			if got, err := text.String(env); (err == nil) != want[i] {
				t.Errorf("%q as %s: %q, %v", v, text.Source, got, err)
			}
		}
	}
	env := &engine.Env{Vars: map[string]any{"v": "-x", "prog": "-c"}}
	if got, err := a.Run.Argv[2].String(env); err != nil || got != "--x" {
		t.Errorf("an argument the author began with -: %q, %v", got, err)
	}
	if got, err := a.Run.Argv[3].String(env); err != nil || got != "a-x" {
		t.Errorf("a - within: %q, %v", got, err)
	}
	if _, err := a.Run.Argv[0].String(env); err == nil {
		t.Error("a program that begins with -")
	}
	if v, err := a.Outputs[1].Value.Eval(&engine.Env{Run: "w-1"}); err != nil || v != "w-1" {
		t.Errorf("output: %v, %v", v, err)
	}
}

// TestVerdicts: rules in the file's order, and an expression for the name.
func TestVerdicts(t *testing.T) {
	conform.Rule(t, "1-language verdict", "the first condition that holds, or one expression")
	s := loaded(t, `
workflow: {id: w}
steps: [{id: a, run: x, gate: g}, {id: b, needs: [], run: x, gate: h}]
gates:
  - {id: g, reviewer: {level: auto, run: x}, on_pass: {next_step: DONE}, verdict: {z: score > 90, pass: score > 70, a: true}}
  - {id: h, reviewer: {level: auto, run: x}, on_pass: {next_step: DONE}, verdict: answer.decision, routes: {stop: DONE}}
`)
	var names []string
	for _, r := range s.Gate("g").Verdict.Rules {
		holds, err := r.When.Eval(&engine.Env{Score: 80.0})
		names = append(names, fmt.Sprintf("%s=%v,%v", r.Outcome, holds, err))
	}
	if got := strings.Join(names, " "); got != "z=false,<nil> pass=true,<nil> a=true,<nil>" {
		t.Error(got)
	}
	name := s.Gate("h").Verdict.Name
	if got, err := name.Eval(&engine.Env{Answer: map[string]any{"decision": "stop"}}); got != "stop" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, answer := range []any{nil, map[string]any{}, map[string]any{"decision": 3.0}, map[string]any{"decision": "../x"}} {
		if got, err := name.Eval(&engine.Env{Answer: answer}); err == nil {
			t.Errorf("%v gives the name %q", answer, got)
		}
	}
}

// FuzzExpressions: compiling and running any expression ends soon and without a panic.
func FuzzExpressions(f *testing.F) {
	for _, src := range []string{`score >= 70`, `steps["X-1"].answer.plan`, `any(1..99, # > vars.n)`, `let a = "x"; a + a`, `toJSON(answer)`, `{"a": [1]}?.a`} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, m := range []mode{asCond, asText, asValue} {
			began := time.Now()
			p, faults := someWorld().compile(src, inGate, m, text.Nearest)
			if (p == nil) == (len(faults) == 0) {
				t.Fatal("neither compiled nor told why")
			}
			if p != nil {
				_, _ = p.printed(someEnv())
				_, _ = p.condition(someEnv())
				_, _ = p.value(someEnv())
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
		}
	})
}

// TestBudget: steps are counted and time is checked.
func TestBudget(t *testing.T) {
	e := &evaluation{until: time.Now().Add(time.Hour)}
	if err := e.charge(maxExprSteps); err != nil {
		t.Error(err)
	}
	if err := e.charge(1); err != errSteps {
		t.Errorf("a step too many: %v", err)
	}
	if err := (&evaluation{until: time.Now().Add(-time.Second)}).charge(1); err != errTime {
		t.Errorf("a second too late: %v", err)
	}
}
