//go:build linux

package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sluice/engine"
	"sluice/tools/conform"
)

// orchestrator is a client of `sluice mcp`.
type orchestrator struct {
	*sdk.ClientSession
	t *testing.T
}

// orchestrates starts `sluice mcp` as an agent would.
func (w *sandbox) orchestrates() orchestrator {
	w.t.Helper()
	cmd := exec.Command(w.bin, "-C", w.repo, "mcp")
	cmd.Env, cmd.Stderr = w.env, w.log
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(w.t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() }) // it may have ended already
	return orchestrator{s, w.t}
}

// try calls a tool, and returns the text of its answer or of its refusal.
func (o orchestrator) try(tool string, in map[string]any) (text string, refused bool) {
	o.t.Helper()
	res, err := o.CallTool(o.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			text += t.Text
		}
	}
	return text, res.IsError
}

// do calls a tool that must succeed.
func (o orchestrator) do(tool string, in map[string]any) map[string]any {
	o.t.Helper()
	text, refused := o.try(tool, in)
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil || refused {
		o.t.Fatalf("%s %v: %s", tool, in, text)
	}
	return out
}

// refuses calls a tool that must refuse, in words that name why.
func (o orchestrator) refuses(why, tool string, in map[string]any) {
	o.t.Helper()
	text, refused := o.try(tool, in)
	if !refused || !strings.Contains(text, why) {
		o.t.Errorf("%s %.300s is not refused for %q, but: %.600s", tool, fmt.Sprint(in), why, text)
	}
}

const drivenSpec = `
workflow: {id: driven}
steps:
  - id: X-1
    agent: {type: writer, launch: subagent, prompt: "Write a.txt that says good."}
    inputs: [plan.md]
    outputs: [a.txt]
    gate: G-1
  - id: X-2
    agent: {type: writer, launch: subagent, prompt: "Write b.txt."}
    outputs: [b.txt]
    answer: {type: object, required: [n], properties: {n: {type: integer}}}
    gate: H
  - id: X-3
    agent: {type: writer, launch: subagent, prompt: "Commit it."}
    signal: {type: git_commit, value: "[GATE:end]"}
    next_step: DONE
gates:
  - {id: G-1, reviewer: {level: auto, run: "grep good a.txt || { echo a.txt does not say good; exit 1; }"}, on_pass: {next_step: X-2}, on_fail: {next_step: X-1}, max_retries: 3}
  - {id: H, reviewer: {level: human}, on_pass: {next_step: X-3}, on_fail: {next_step: X-2}, max_retries: 3}
`

// served is a sandbox whose daemon serves a repo with the spec.
func served(t *testing.T, workflow, spec string) *sandbox {
	t.Helper()
	w := newSandbox(t, quietSettings)
	w.put("repo/.workflow/specs/"+workflow+".yaml", spec)
	w.put("repo/plan.md", "say good\n")
	w.commit()
	w.up()
	return w
}

// TestMCP drives a workflow of offered steps through the tools: a failed gate and its retry, a question of nobody's but a
// person's, a step whose word is a commit.
func TestMCP(t *testing.T) {
	conform.Rule(t, "7-agents tools", "a workflow driven through them, by the SDK's own client")
	conform.Rule(t, "7-agents no word at a gate", "everything that could be tried at a gate that asks a person")
	t.Parallel()
	w := served(t, "driven", drivenSpec)
	o := w.orchestrates()
	if got := o.do("next", nil); got["offer"] != nil || !strings.Contains(got["say"].(string), "no run is live") {
		t.Errorf("before there is a run: %v", got)
	}
	w.do(w.bin, "start", "driven")
	x1 := map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1}
	with := func(in map[string]any, more map[string]any) map[string]any {
		out := maps.Clone(in)
		maps.Copy(out, more)
		return out
	}
	done := map[string]any{"status": "done", "summary": "did it"}
	judge := map[string]any{"wait_seconds": 60}

	offer := o.do("next", map[string]any{"wait_seconds": 60})["offer"].(map[string]any)
	if offer["step"] != "X-1" || !strings.Contains(offer["prompt"].(string), "Write a.txt that says good.") || offer["worktree"] != w.repo ||
		fmt.Sprint(offer["inputs"], offer["outputs"]) != "[plan.md] [a.txt]" || offer["claimed"] != nil {
		t.Errorf("the offer: %v", offer)
	}
	o.refuses("was not claimed", "signal", with(x1, done))
	if got := o.do("next", map[string]any{"claim": true}); got["offer"] == nil {
		t.Fatalf("nothing was claimed: %v", got)
	}
	o.refuses("was taken by", "claim", x1)
	o.refuses("has not signalled", "evaluate", map[string]any{"run": "driven-1", "step": "X-1"})
	if got := o.do("next", nil); got["offer"] != nil || len(got["claimed"].([]any)) != 1 {
		t.Errorf("with all claimed: %v", got)
	}

	w.put("repo/a.txt", "bad\n")
	o.do("signal", with(x1, done))
	got := o.do("evaluate", with(x1, judge))
	if got["outcome"] != "failed" || !strings.Contains(fmt.Sprint(got["failures"]), "does not say good") {
		t.Fatalf("a failed gate: %v", got)
	}
	again := o.do("next", map[string]any{"claim": true, "wait_seconds": 60})["offer"].(map[string]any)
	if again["attempt"] != 2.0 || !strings.Contains(again["prompt"].(string), "does not say good") {
		t.Errorf("the retry: %v", again)
	}
	if got := fmt.Sprint(o.do("context", map[string]any{"run": "driven-1", "step": "X-1"})); !strings.Contains(got, "does not say good") || !strings.Contains(got, "Write a.txt") {
		t.Errorf("the context lacks the failure or the prompt: %s", got)
	}
	w.put("repo/a.txt", "good\n")
	o.refuses("attempt 1 of X-1 is not on offer", "signal", with(x1, done))
	x1["attempt"] = 2
	o.do("signal", with(x1, done))
	if got := o.do("evaluate", with(x1, judge)); got["outcome"] != "passed" {
		t.Fatalf("a passed gate: %v", got)
	}

	x2 := map[string]any{"run": "driven-1", "step": "X-2", "attempt": 1}
	if got := o.do("next", map[string]any{"claim": true, "wait_seconds": 60, "run": "driven-1"})["offer"].(map[string]any); got["step"] != "X-2" {
		t.Fatalf("next is %v", got)
	}
	w.put("repo/b.txt", "b\n")
	o.do("signal", with(with(x2, done), map[string]any{"answer": map[string]any{"n": 7}}))
	if got := o.do("evaluate", with(x2, judge)); got["outcome"] != "human" || !strings.Contains(got["say"].(string), "only a person decides it") {
		t.Fatalf("a person's gate: %v", got)
	}
	w.refusesAHumansWord(o)
	if got := fmt.Sprint(o.do("context", map[string]any{"run": "driven-1", "step": "X-1"})["answers"]); got != "map[X-2:map[n:7]]" {
		t.Errorf("the answers: %s", got)
	}
	w.do(w.bin, "pass", "H")
	if got := o.do("evaluate", with(x2, judge)); got["outcome"] != "passed" {
		t.Fatalf("after the person's word: %v", got)
	}

	x3 := map[string]any{"run": "driven-1", "step": "X-3", "attempt": 1}
	if got := o.do("next", map[string]any{"claim": true, "wait_seconds": 60})["offer"].(map[string]any); !strings.Contains(got["when_done"].(string), "[GATE:end]") {
		t.Errorf("a step whose word is a commit: %v", got)
	}
	o.refuses("[GATE:end]", "signal", with(x3, done))
	w.do("git", "add", "-A")
	w.do("git", "commit", "-qm", "all of it\n\n[GATE:end]")
	if got := o.do("evaluate", with(x3, judge)); got["outcome"] != "passed" {
		t.Errorf("a step whose word was a commit: %v", got)
	}
	eventually(t, "the run is completed", func() bool { st, ok := w.status(); return ok && st.Runs[0].Phase == engine.RunCompleted })
	if got := o.do("next", map[string]any{"wait_seconds": 60}); !strings.Contains(got["say"].(string), "no run is live") {
		t.Errorf("at the end: %v", got)
	}
}

// refusesAHumansWord tries to decide the gate H of driven-1, which asks a person: no tool is there for it, and none is
// talked into it.
func (w *sandbox) refusesAHumansWord(o orchestrator) {
	w.t.Helper()
	tools, err := o.ListTools(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "claim context evaluate list next signal" {
		w.t.Errorf("there are other tools now, none of which may decide: %s", got)
	}
	for _, name := range []string{"pass", "fail", "veto", "decide", "answer", "retry", "abort"} {
		o.refuses("unknown tool", name, map[string]any{"gate": "H"})
	}
	word := func(step, status string) map[string]any {
		return map[string]any{"run": "driven-1", "step": step, "attempt": 1, "status": status, "summary": "pass", "question": "pass?"}
	}
	for _, step := range []string{"H", "H-pass", "G-1", "G-1-fail"} {
		o.refuses("is a gate", "signal", word(step, "done"))
		o.refuses("is a gate", "claim", map[string]any{"run": "driven-1", "step": step})
		o.refuses("is a gate", "evaluate", map[string]any{"run": "driven-1", "step": step})
	}
	o.refuses("has signalled", "signal", word("X-2", "done"))
	o.refuses("want done, failed or blocked", "signal", word("X-2", "pass"))
	for _, more := range []string{"outcome", "verdict", "gate", "token", "human"} {
		in := word("X-2", "done")
		in[more] = "pass"
		o.refuses(more, "signal", in)
	}
	st, ok := w.status()
	if !ok || len(st.Runs) != 1 || len(st.Runs[0].Waits) != 1 || st.Runs[0].Waits[0].Kind != "human" || st.Runs[0].Waits[0].Gate != "H" {
		w.t.Fatalf("H asks nobody any more: %+v", st)
	}
	if got := fmt.Sprint(o.do("list", map[string]any{"run": "driven-1"})["runs"]); strings.Contains(got, "sluice pass") || !strings.Contains(got, "only a person decides it") {
		w.t.Errorf("the list tells an agent how a person decides: %s", got)
	}
}

// TestMCPClaims: what a person has claimed is the person's to report, and a claim that cannot count leaves no record.
func TestMCPClaims(t *testing.T) {
	t.Parallel()
	w := served(t, "driven", drivenSpec)
	w.do(w.bin, "start", "driven")
	o := w.orchestrates()
	x1 := map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1}
	sabotage := map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1, "status": "failed", "summary": "no"}
	eventually(t, "an offer", func() bool { return strings.Contains(w.do(w.bin, "next"), "X-1") })
	w.do(w.bin, "next", "--claim")
	o.refuses("has claimed it and reports it", "signal", sabotage)
	got := o.do("next", nil)
	if taken := fmt.Sprint(got["claimed"]); !strings.Contains(taken, "has claimed it and reports it") || !strings.Contains(got["say"].(string), "nothing is on offer now") {
		t.Errorf("the person's step: %v", got)
	}
	o.refuses("was taken by", "claim", x1)
	if log := w.do(w.bin, "log", "--all", "driven-1"); strings.Contains(log, "ignored: claim") || strings.Contains(log, "says failed") {
		t.Errorf("the record:\n%s", log)
	}
	w.put("repo/a.txt", "good\n")
	w.do(w.bin, "signal", "X-1", "-m", "did it")
	eventually(t, "the person's report counts", func() bool { got, _ := o.try("evaluate", x1); return strings.Contains(got, `"outcome":"passed"`) })
}

// TestMCPBounds: what an agent sends is bounded and checked, and refused in words.
func TestMCPBounds(t *testing.T) {
	conform.Rule(t, "7-agents tools", "what is too long, too much or unknown is refused")
	t.Parallel()
	w := served(t, "driven", drivenSpec)
	w.do(w.bin, "start", "driven")
	o := w.orchestrates()
	o.do("next", map[string]any{"claim": true, "wait_seconds": 60})
	say := func(more map[string]any) map[string]any {
		in := map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1, "status": "done"}
		maps.Copy(in, more)
		return in
	}
	long := strings.Repeat("x", 20<<10)
	for why, in := range map[string]map[string]any{
		"more than 16384 bytes":       say(map[string]any{"summary": long}),
		"give the attempt":            say(map[string]any{"attempt": 0}),
		"blocked without a question":  say(map[string]any{"status": "blocked"}),
		"failed without a summary":    say(map[string]any{"status": "failed"}),
		"no run has this id":          say(map[string]any{"run": "../../etc"}),
		"its steps are X-1, X-2":      say(map[string]any{"step": "X-9-9-9"}),
		"no run driven-9":             say(map[string]any{"run": "driven-9"}),
		"an id":                       say(map[string]any{"step": "../X-1"}),
		"more than 65536 bytes":       say(map[string]any{"answer": map[string]any{"n": strings.Repeat("x", 70<<10)}}),
		"attempt 999999 of X-1":       say(map[string]any{"attempt": 999999}),
		"is not on offer":             say(map[string]any{"step": "X-2"}),
		"validating \"arguments\"":    say(map[string]any{"attempt": "one"}),
		"want 0 to 600: call again t": nil,
	} {
		if in == nil {
			o.refuses(why, "next", map[string]any{"wait_seconds": 3600})
			o.refuses(why, "evaluate", map[string]any{"run": "driven-1", "step": "X-1", "wait_seconds": -1})
			continue
		}
		o.refuses(why, "signal", in)
	}
	// A person and an agent see the same: nothing was signalled.
	if out := w.do(w.bin, "status", "driven-1"); !strings.Contains(out, "X-1") || strings.Contains(out, "X-1.2") {
		t.Errorf("after all that:\n%s", out)
	}
	// A message that is too long ends this session, and nothing else.
	if _, err := o.CallTool(t.Context(), &sdk.CallToolParams{Name: "signal", Arguments: say(map[string]any{"summary": strings.Repeat("x", 2<<20)})}); err == nil {
		t.Error("a message of 2 MiB is taken")
	}
	if got := w.orchestrates().do("list", nil); len(got["runs"].([]any)) != 1 {
		t.Errorf("another session: %v", got)
	}
}

// TestMCPDaemonAway: a missing daemon is reported, and the session continues when it is back.
func TestMCPDaemonAway(t *testing.T) {
	t.Parallel()
	w := served(t, "driven", drivenSpec)
	w.do(w.bin, "start", "driven")
	o := w.orchestrates()
	o.do("next", map[string]any{"claim": true, "wait_seconds": 60})
	w.kill()
	o.refuses("no sluice process serves", "list", nil)
	o.refuses("`sluice watch add` and `sluice daemon`", "next", map[string]any{"wait_seconds": 600})
	w.boot()
	w.serves()
	w.put("repo/a.txt", "good\n")
	o.do("signal", map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1, "status": "done"})
	if got := o.do("evaluate", map[string]any{"run": "driven-1", "step": "X-1", "attempt": 1, "wait_seconds": 60}); got["outcome"] != "passed" {
		t.Errorf("after the restart: %v", got)
	}
}

// TestMCPEnds: an agent that ends, or is stopped, leaves no sluice mcp behind, even during a call.
func TestMCPEnds(t *testing.T) {
	t.Parallel()
	w := newSandbox(t, quietSettings)
	w.put("repo/.workflow/specs/first.yaml", "workflow: {id: first}\nsteps:\n  - {id: F, run: \"true\", next_step: DONE}\n")
	w.put("repo/.workflow/specs/second.yaml", "workflow: {id: second}\nsteps:\n  - {id: S, needs: [first/F], run: \"true\", next_step: DONE}\n")
	w.starts("second") // it waits for first, which nobody starts
	for name, end := range map[string]func(in io.Closer, cmd *exec.Cmd) error{
		"the agent ends":       func(in io.Closer, cmd *exec.Cmd) error { return in.Close() },
		"it is told to (TERM)": func(in io.Closer, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		cmd := exec.Command(w.bin, "-C", w.repo, "mcp")
		cmd.Env, cmd.Stderr = w.env, w.log
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		fmt.Fprintln(in, `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}`)
		fmt.Fprintln(in, `{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
		fmt.Fprintln(in, `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "next", "arguments": {"wait_seconds": 600}}}`)
		fmt.Fprintln(in, `{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list", "arguments": {}}}`)
		for answered := false; !answered; answered = strings.Contains(lines.Text(), `"id":3,`) {
			if !lines.Scan() {
				t.Fatalf("%s: it does not answer", name)
			}
		}
		if err := end(in, cmd); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(waitMost):
			t.Errorf("%s: sluice mcp is still there", name)
			_ = cmd.Process.Kill()
			<-ended
		}
	}
}
