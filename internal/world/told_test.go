//go:build linux || darwin

package world

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/tools/conform"
)

const toldSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, signal: {type: stdout_exit}, next_step: S}
  - {id: S, agent: {type: writer, prompt: do it}, signal: {type: sentinel_file}, next_step: Q}
  - {id: Q, agent: {type: writer, prompt: do it}, signal: {type: stdout_exit}, answer: {type: object, required: [plan], properties: {plan: {type: array}}}, gate: G}
gates:
  - id: G
    reviewer: {level: auto, agent_type: judge, prompt: look}
    on_pass: {next_step: DONE}
`

// Lines of claude's.
const (
	toldInit   = `echo '{"type":"system","subtype":"init","session_id":"s"}'` + "\n"
	toldGood   = `echo '{"type":"result","subtype":"success","result":"Done.","total_cost_usd":1,"usage":{"input_tokens":90,"output_tokens":10}}'` + "\n"
	toldDenied = `echo '{"type":"result","subtype":"success","result":"Done.","total_cost_usd":1,"usage":{"input_tokens":90,"output_tokens":10},"permission_denials":[{"tool_name":"Bash"}]}'` + "\n"
	toldLimit  = `echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"try again in 2 hours","total_cost_usd":0.5,"usage":{"input_tokens":5}}'; exit 1` + "\n"
)

// claude makes an agent whose output is read as claude's.
func (b *bench) claude(text string) {
	b.script("claude", text)
	a := b.settings.Agents["claude"]
	a.Format = program.Claude
	b.settings.Agents["claude"] = a
}

// TestToldByItsProgram: the exit code is not the word of an agent whose stream is read, and its cost is counted.
func TestToldByItsProgram(t *testing.T) {
	conform.Rule(t, "field ask 8", "an exit code of 0 is no success where the agent's program says otherwise")
	for name, c := range map[string]struct{ step, script, class, why string }{
		"good":                 {"A", toldInit + toldGood, "", ""},
		"denied":               {"A", toldInit + toldDenied, engine.ClassWork, "not allowed to use Bash"},
		"no final event":       {"A", toldInit, engine.ClassInfrastructure, "final event"},
		"a limit":              {"A", toldInit + toldLimit, engine.ClassLimit, "2 hours"},
		"denied, but signals":  {"S", `echo '{"status":"done"}' >"$SLUICE_SIGNAL"` + "\n" + toldInit + toldDenied, "", ""},
		"it lies about itself": {"A", `echo '{"format":"text"}' >"$(dirname "$SLUICE_ANSWER")/agent.json"` + "\n" + toldInit + toldDenied, engine.ClassWork, "Bash"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, toldSpec)
			b.claude(c.script)
			ev := b.carry(b.stepJob(c.step, 1, 1))
			if ev.Exit.Class != c.class || !strings.Contains(ev.Exit.Why, c.why) {
				t.Errorf("%+v", ev.Exit)
			}
			if c.class == engine.ClassLimit && ev.Exit.ResumeAt.IsZero() {
				t.Error("it does not say until when")
			}
			if want := (engine.Usage{Tokens: 100, CostUSD: 1}); strings.Contains(c.script, toldGood) && ev.Exit.Usage != want {
				t.Errorf("usage %+v", ev.Exit.Usage)
			}
		})
	}
}

// TestLimitOfACorrection: a limit that is met when the agent is asked again is no fault of the work, of the writer's or of
// the reviewer's; and what was asked again has cost, too.
func TestLimitOfACorrection(t *testing.T) {
	script := toldInit + "[ -e .git/once ] && { " + strings.TrimSuffix(toldLimit, "\n") + "; }\ntouch .git/once\n" + toldGood
	b := newBench(t, toldSpec)
	b.claude(script)
	ev := b.carry(b.stepJob("Q", 1, 1))
	if ev.Exit.Class != engine.ClassLimit || ev.Exit.Usage != (engine.Usage{Tokens: 105, CostUSD: 1.5}) {
		t.Errorf("%+v", ev.Exit)
	}
	b.sh("rm .git/once")
	ev = b.carry(b.reviewJob("G", 1))
	if ev.Exit.Class != engine.ClassLimit || ev.Exit.Usage != (engine.Usage{Tokens: 105, CostUSD: 1.5}) {
		t.Errorf("%+v", ev.Exit)
	}
}

// TestStoppedHasCost: what was ended by us has cost all the same, and its last words are words.
func TestStoppedHasCost(t *testing.T) {
	b := newBench(t, toldSpec)
	b.claude(toldInit + `echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"I am at it."}],"usage":{"input_tokens":7,"output_tokens":3}}}'` + "\ntouch .git/at; sleep 1000\n")
	j := b.stepJob("A", 1, 1)
	ctx, cancel := context.WithCancel(b.ctx())
	running := background(ctx, b.e, j, nil)
	eventually(t, "it runs", func() bool { return b.has(".git/at") })
	cancel()
	<-running
	stop := b.stopJob(j)
	stop.Why = "timeout"
	ev, ok := b.e.Carry(b.ctx(), stop, nil).(engine.ProcessEnded)
	if !ok || ev.Exit.Usage.Tokens != 10 || !ev.Exit.Stopped || ev.Output != "I am at it." {
		t.Errorf("%+v", ev)
	}
}

// TestEndStateIsKept: what an attempt leaves is on a ref of ours, committed or not, however it ended.
func TestEndStateIsKept(t *testing.T) {
	conform.Rule(t, "field asks 1", "what an attempt leaves is kept on a salvage ref")
	b := newBench(t, toldSpec)
	b.claude("echo new >new.txt; echo changed >README.md; git add README.md; exit 3\n")
	b.carry(b.stepJob("A", 1, 1))
	b.sh("rm new.txt; git checkout -q -f README.md")
	if got := b.sh("git show refs/sluice/salvage/w-1/A.1:new.txt; git show refs/sluice/salvage/w-1/A.1:README.md"); got != "new\nchanged" {
		t.Errorf("%q", got)
	}
}

// TestStreamIsBounded: a file of the agent's making that has no end is not read to it, while it runs or after.
func TestStreamIsBounded(t *testing.T) {
	b := newBench(t, toldSpec)
	b.claude(toldInit + toldGood + `truncate -s 1T "$(dirname "$SLUICE_ANSWER")/stdout"` + "\n")
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.Exit.Class != "" || ev.Exit.Usage.Tokens != 100 {
		t.Errorf("%+v", ev.Exit)
	}
	live, dir := launch.NewStream(program.Claude, time.Now), t.TempDir()
	f, err := os.Create(filepath.Join(dir, "stdout"))
	if err == nil {
		err = errors.Join(f.Truncate(1<<40), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for was := int64(-1); was != live.Total() && was <= launch.MaxStream; {
		was = live.Total()
		live.More(dir, "stdout")
	}
	if got := live.Total(); got != launch.MaxStream {
		t.Errorf("%d bytes of it were read while it ran", got)
	}
	if err := os.Truncate(filepath.Join(dir, "stdout"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(b.root, ".workflow/runs/w-1/A.1/stdout"), 0); err != nil {
		t.Fatal(err)
	}
}
