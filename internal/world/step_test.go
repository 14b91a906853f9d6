//go:build linux || darwin

package world

import (
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

const agentSpec = `
workflow: {id: w, context_files: [README.md], vars: {goal: x, n: 3}}
steps:
  - id: A
    name: write-it
    agent: {type: writer, prompt: "Do ${{vars.goal}}"}
    inputs: [in.txt]
    outputs: [out.txt]
    success_criterion: "file out.txt exists and is non-empty"
    env: {MODE: "m-${{vars.n}}"}
    signal: {type: sentinel_file}
    gate: G
gates:
  - id: G
    reviewer: {level: auto, agent_type: reviewer}
    on_pass: {next_step: DONE}
`

func TestStepGetsWhatAnAgentGets(t *testing.T) {
	conform.Rule(t, "004 §3 context_files", "the agent is told to read them")
	conform.Rule(t, "004 §2 Step.agent", "a role's agent, in its worktree")
	conform.Rule(t, "004 §2 Step.inputs", "the prompt names the inputs")
	conform.Rule(t, "1-language values", "values in prompt and environment")
	conform.Rule(t, "2-files runs", "the folder of an attempt; runs/last")
	conform.Rule(t, "004 §5 question 6", "what it has to know is in its prompt and environment")
	conform.Rule(t, "4-trust environment", "a variable that nobody allowed does not reach the agent")
	conform.Rule(t, "7-agents gets", "prompt, folder and environment")
	b := newBench(t, agentSpec)
	b.put("in.txt", "in")
	b.script("one", `cat >got.txt; env | sort >env.txt; pwd -P >cwd.txt; printf '{"status":"done"}' >"$SLUICE_SIGNAL"`)
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.Exit.Code != 0 || ev.Exit.NotStarted != "" || ev.Exit.Refused != "" {
		t.Fatalf("exit %+v %s", ev.Exit, ev.Output)
	}
	wantText(t, "the prompt", b.get("got.txt"), "Do a'b", "in.txt", "out.txt", "README.md", b.path(".workflow/signals/w-1/A-done.json"))
	if b.get("got.txt") != b.get(".workflow/runs/w-1/A.1/prompt.md") {
		t.Error("prompt.md is not what it was given")
	}
	dir := b.path(".workflow/runs/w-1/A.1")
	wantText(t, "its environment", b.get("env.txt"), "SLUICE_RUN=w-1\n", "SLUICE_WORKFLOW=w\n", "SLUICE_STEP=A\n", "SLUICE_ATTEMPT=1\n", "SLUICE_ROLE=writer\n",
		"SLUICE_TOKEN="+b.e.Token("w-1/A#1.1")+"\n", "SLUICE_PROMPT="+dir+"/prompt.md\n", "SLUICE_ANSWER="+dir+"/answer.json\n",
		"SLUICE_SIGNAL="+b.path(".workflow/signals/w-1/A-done.json")+"\n", "SLUICE_VAR_N=3\n", "SLUICE_VAR_GOAL=a'b\n", "MODE=m-3\n", "MY_KEY=k\n")
	if strings.Contains(b.get("env.txt"), "s3cret") {
		t.Error("a variable that nobody allowed reached the agent")
	}
	if got := strings.TrimSpace(b.get("cwd.txt")); got != b.root {
		t.Errorf("cwd %s", got)
	}
	if to, err := os.Readlink(b.path(".workflow/runs/last")); err != nil || to != "w-1" {
		t.Errorf("runs/last: %s %v", to, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, dir + "/prompt.md": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if ev.Output != "" {
		t.Errorf("output that nobody asked for: %q", ev.Output)
	}
}

func TestMissingInputIsRefusedByName(t *testing.T) {
	conform.Rule(t, "1-language rule 3 input", "a plain input that is missing is named and nothing is launched")
	conform.Rule(t, "1-language rule 3 input", "refused by name, before launch")
	b := newBench(t, agentSpec)
	b.script("one", `touch ran`)
	ev := b.carry(b.stepJob("A", 1, 1))
	if want := "input in.txt is missing: looked in the root of the repo"; ev.Exit.Refused != want {
		t.Errorf("refused %q, want %q", ev.Exit.Refused, want)
	}
	if b.has("ran") {
		t.Error("it ran")
	}
}

const runSpec = `
workflow: {id: w}
steps:
  - id: A
    run: %s
    next_step: DONE
`

func TestRunStep(t *testing.T) {
	conform.Rule(t, "1-language rule 3 stdout_exit", "another exit code comes with the end of the output")
	b := newBench(t, strings.Replace(runSpec, "%s", `"echo hi; echo no >&2; echo $SLUICE_STEP >>ran; exit 3"`, 1))
	for range 2 { // the second time its recorded end is given
		ev := b.carry(b.stepJob("A", 1, 1))
		if ev.Exit.Code != 3 || ev.Exit.Class != "" {
			t.Errorf("exit %+v", ev.Exit)
		}
		wantText(t, "its output", ev.Output, "hi", "no")
	}
	if got := b.get("ran"); got != "A\n" {
		t.Errorf("it ran %q", got)
	}
}

// TestLastIsTheNewest: a launch of an older run does not take runs/last back.
func TestLastIsTheNewest(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"true"`, 1))
	for i, run := range []string{"w-9", "w-10", "w-2"} {
		j := b.stepJob("A", 1, 1)
		j.Run, j.Key = run, run+"/A#1.1"
		if _, ok := b.e.Carry(b.ctx(), j, nil).(engine.ProcessEnded); !ok {
			t.Fatal(i)
		}
	}
	if to, err := os.Readlink(b.path(".workflow/runs/last")); err != nil || to != "w-10" {
		t.Errorf("runs/last: %s %v", to, err)
	}
}

func TestMissingBinaryIsFatal(t *testing.T) {
	conform.Rule(t, "7-agents classes", "a command that is not there is fatal")
	b := newBench(t, strings.Replace(runSpec, "%s", `[no-such-command]`, 1))
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.Exit.Class != engine.ClassFatal || !strings.Contains(ev.Exit.Why, "no-such-command") || !strings.Contains(ev.Exit.Why, "install") {
		t.Errorf("exit %+v", ev.Exit)
	}
}
