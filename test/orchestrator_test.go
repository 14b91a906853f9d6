//go:build linux

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/modelstub"
)

// conductor is what the stub's model does with examples/exp-7-orchestrator/orchestrate.md: it does what that says, by what
// the tools tell it.
type conductor struct {
	offer struct {
		Run     string `json:"run"`
		Step    string `json:"step"`
		Attempt int    `json:"attempt"`
		Prompt  string `json:"prompt"`
	}
	waits bool // for the MCP server, which claude may start without
}

func mcpTool(name string, in map[string]any) modelstub.Act {
	return modelstub.Act{Tool: "mcp__sluice__" + name, Input: in}
}

// play is the next thing to do in a conversation; it is told apart by what the last tool has answered.
func (c *conductor) play(turn modelstub.Turn) modelstub.Act {
	var got struct {
		Offer   json.RawMessage   `json:"offer"`
		Claimed []json.RawMessage `json:"claimed"`
		Taken   bool              `json:"taken"`
		Outcome string            `json:"outcome"`
		Say     string            `json:"say"`
	}
	isJSON := json.Unmarshal([]byte(turn.Result), &got) == nil
	waited := c.waits
	c.waits = strings.Contains(turn.Result, "Call WaitForMcpServers to wait") ||
		strings.Contains(turn.Result, "No such tool available: mcp__sluice__") // so it says if the server is slow to start
	which := map[string]any{"run": c.offer.Run, "step": c.offer.Step}
	attempt := map[string]any{"run": c.offer.Run, "step": c.offer.Step, "attempt": c.offer.Attempt}
	switch {
	case c.waits:
		return modelstub.Act{Tool: "WaitForMcpServers", Input: map[string]any{}}
	case turn.Step == 0, waited, got.Outcome == "passed", got.Outcome == "failed":
		return mcpTool("next", map[string]any{"claim": true, "wait_seconds": 60})
	case !isJSON && c.offer.Step == "":
		return modelstub.Act{Text: "No step was offered: " + turn.Result}
	case !isJSON: // what the subagent says
		attempt["status"], attempt["summary"] = "done", "the subagent says: "+turn.Result[:min(len(turn.Result), 200)]
		return mcpTool("signal", attempt)
	case got.Taken:
		attempt["wait_seconds"] = 300
		return mcpTool("evaluate", attempt)
	case len(got.Offer) > 0 && string(got.Offer) != "null":
		if err := json.Unmarshal(got.Offer, &c.offer); err != nil {
			return modelstub.Act{Text: err.Error()}
		}
		return modelstub.Act{Tool: "Agent", Input: map[string]any{"description": "do " + c.offer.Step, "prompt": c.offer.Prompt, "subagent_type": "general-purpose"}}
	case len(got.Claimed) > 0: // by a session that has ended
		if err := json.Unmarshal(got.Claimed[0], &c.offer); err != nil {
			return modelstub.Act{Text: err.Error()}
		}
		which["run"], which["step"] = c.offer.Run, c.offer.Step
		return mcpTool("context", which)
	}
	return modelstub.Act{Text: "That is all: " + got.Say}
}

// acts are what the stub's models do in exp-7: the first try of X-1 is wrong where bad says so.
func acts(repo string, bad bool) map[string]modelstub.Part {
	file := func(name, text string) []modelstub.Act {
		return []modelstub.Act{{Text: "I write.", Write: [2]string{filepath.Join(repo, name), text}}, {Text: "Wrote " + name + "."}}
	}
	good, wrong := file("add.sh", "echo $(($1 + $2))\n"), file("add.sh", "echo $(($1 - $2))\n")
	pass, fail := judging("pass", "it adds"), judging("fail", "add.sh 1 2 printed -1, not 3")
	parts := map[string]modelstub.Part{"x1": {good}, "review": {pass}, "x2": {file("test.sh", "test \"$(sh add.sh 1 2)\" = 3\n")}}
	if bad {
		parts["x1"], parts["review"] = modelstub.Part{wrong, rewrite(good)}, modelstub.Part{fail, pass}
	}
	return parts
}

// rewrite has a file read before it is written: claude writes over nothing that it has not read.
func rewrite(acts []modelstub.Act) []modelstub.Act {
	name := acts[0].Write[0]
	return append([]modelstub.Act{{Tool: "Read", Input: map[string]any{"file_path": name}}}, acts...)
}

// experiment7 creates the example for the real claude: its prompts name their parts.
func experiment7(t *testing.T, settings string, parts func(repo string) map[string]modelstub.Part) (*sandbox, *modelstub.Stub) {
	t.Helper()
	played := map[string]modelstub.Part{}
	w, stub := newAgents(t, "veto_window: 1s\nagents: {claude: {command: [claude, --allowedTools, \"Bash,Write,Edit,Read\"]}}\nroles: {\"*\": {agent: claude}}\n"+settings, played)
	maps.Copy(played, parts(w.repo))
	w.do("cp", "-R", abs("../examples/exp-7-orchestrator")+"/.", w.repo)
	if err := os.Remove(filepath.Join(w.repo, ".workflow/config.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"exp-7-agent", "exp-7-script"} {
		file := filepath.Join(w.repo, ".workflow/specs", name+".yaml")
		spec, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.NewReplacer("prompt: Write add.sh", "prompt: STUB:x1 Write add.sh", "prompt: Write test.sh", "prompt: STUB:x2 Write test.sh",
			"prompt: Does", "prompt: STUB:review Does").Replace(string(spec))
		if strings.Count(said, "STUB:") != 3 {
			t.Fatalf("the prompts of %s are others now:\n%s", name, said)
		}
		w.put("repo/.workflow/specs/"+name+".yaml", said)
	}
	w.commit()
	w.up()
	return w, stub
}

// conduct runs the real claude as the orchestrator, as the example's README says, until it ends.
func (w *sandbox) conduct() (out string, err error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `exec claude -p "STUB:orchestrate $(cat orchestrate.md)" --mcp-config mcp.json --strict-mcp-config --allowedTools mcp__sluice,Agent,Write,Edit,Bash,Read`)
	cmd.Dir, cmd.Env = w.repo, w.env
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// TestOrchestrator has the real claude drive exp-7-agent from its first offer to DONE: the tools of sluice mcp, a subagent a
// step, a failed review, the retry that is told why.
func TestOrchestrator(t *testing.T) {
	conform.Rule(t, "004 §6 experiment 7", "the real claude, a subagent a step")
	t.Parallel()
	w, stub := experiment7(t, "", func(repo string) map[string]modelstub.Part {
		parts := acts(repo, true)
		parts["orchestrate"] = modelstub.Part{{{Play: new(conductor).play}}}
		return parts
	})
	w.do(w.bin, "start", "exp-7-agent")
	// claude starts without the tools of a server that is slow to start
	w.put("repo/mcp.json", `{"mcpServers": {"sluice": {"command": "sh", "args": ["-c", "sleep 5; exec sluice mcp"]}}}`)
	out, err := w.conduct()
	st, _ := w.status()
	if err != nil || len(st.Runs) != 1 || st.Runs[0].Phase != engine.RunCompleted || !strings.Contains(out, "no run is live") {
		for _, r := range stub.Seen() {
			t.Logf("%s %d %.200v", r.Part, r.Step, r.Tools)
		}
		t.Fatalf("%v: it says %q\n%s", err, out, w.do(w.bin, "status"))
	}
	told := false
	for _, r := range stub.Seen() {
		told = told || r.Part == "x1" && strings.Contains(r.Text, "add.sh 1 2 printed -1, not 3")
	}
	if !told {
		t.Error("the subagent of the second attempt was not told what the reviewer found")
	}
	if log := w.do(w.bin, "log", "--all", "exp-7-agent-1"); !strings.Contains(log, "the subagent says: Wrote add.sh.") {
		t.Errorf("the subagent's words did not become the step's summary:\n%s", log)
	}
}

// trial is one way that a workflow is driven through one trouble.
type trial struct {
	trouble string
	driver  string // sluice or an agent

	launched int           // processes of agents: by sluice, and orchestrators
	talks    int           // conversations with the model
	asked    int           // requests of the model
	sent     int           // bytes of these
	fresh    int           // bytes of the longest of each conversation: the others begin as it does
	took     time.Duration // from the start to DONE
	byHand   int           // orchestrators that had to be started again
	phase    string
	known    int64 // tokens that sluice has counted
}

// troubles are what the trials go through.
const (
	calm    = "nothing goes wrong"
	refused = "a review fails"
	crashed = "an agent is killed"
	limited = "a usage limit, 5 s"
)

// limit is a usage limit of the account: while it holds, every request is refused.
type limit struct {
	mu   sync.Mutex
	ends time.Time
}

// hit begins the limit, once.
func (l *limit) hit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.IsZero() {
		l.ends = time.Now().Add(limitOf)
	}
}

// left is how long it still holds.
func (l *limit) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.ends), 0)
}

// over has a part meet the limit; its first request begins it where begins says so.
func (l *limit) over(part modelstub.Part, begins bool) modelstub.Part {
	var out modelstub.Part
	for _, acts := range part {
		var wrapped []modelstub.Act
		for _, act := range acts {
			wrapped = append(wrapped, modelstub.Act{Play: func(turn modelstub.Turn) modelstub.Act {
				if begins {
					l.hit()
				}
				if left := l.left(); left > 0 {
					return modelstub.Act{Error: 429, Header: map[string]string{"retry-after": "3600", "x-should-retry": "false"},
						Message: fmt.Sprintf("You have hit your limit: try again in %d seconds.", left/time.Second+1)}
				}
				if act.Play != nil {
					return act.Play(turn)
				}
				return act
			}})
		}
		out = append(out, wrapped)
	}
	return out
}

// limitOf is how long the limit of a trial lasts.
const limitOf = 5 * time.Second

// troubled puts the trouble in where the agent of X-1 begins.
func troubled(trouble, repo string, l *limit) map[string]modelstub.Part {
	parts := acts(repo, trouble == refused)
	parts["orchestrate"] = modelstub.Part{}
	for range orchestratorsMost {
		parts["orchestrate"] = append(parts["orchestrate"], []modelstub.Act{{Play: new(conductor).play}})
	}
	switch trouble {
	case crashed: // its own program: $PPID of the shell that its tool starts
		parts["x1"] = modelstub.Part{{{Bash: "kill -9 $PPID"}, {Text: "I live."}}, parts["x1"][0]}
	case limited:
		for name, part := range parts {
			parts[name] = l.over(part, name == "x1")
		}
	}
	return parts
}

// orchestratorsMost is how often a trial starts an orchestrator.
const orchestratorsMost = 5

// try drives exp-7 through a trouble, and measures.
func try(t *testing.T, trouble, driver string) trial {
	t.Helper()
	out := trial{trouble: trouble, driver: driver}
	var l limit
	w, stub := experiment7(t, "", func(repo string) map[string]modelstub.Part { return troubled(trouble, repo, &l) })
	workflow := "exp-7-script"
	if driver != "sluice" {
		workflow = "exp-7-agent"
	}
	began := time.Now()
	w.do(w.bin, "start", workflow)
	over := func() bool {
		st, ok := w.status()
		if !ok || len(st.Runs) != 1 {
			return false
		}
		out.phase, out.known = st.Runs[0].Phase, int64(st.Runs[0].Usage.Tokens)
		return !st.Runs[0].Ended.IsZero() || st.Runs[0].Paused != ""
	}
	if driver == "sluice" {
		w.eventually("the run has ended", over)
	} else {
		for n := 0; n < orchestratorsMost && !over(); n++ {
			if n > 0 { // somebody sees at once that it is gone, and when the limit ends
				out.byHand++
				w.eventually("the limit is over", func() bool { return l.left() == 0 })
			}
			said, err := w.conduct()
			t.Logf("%s: orchestrator %d: %.300s (%v)", trouble, n+1, said, err)
			out.launched++
		}
		over()
	}
	out.took = time.Since(began)
	out.launched += w.launches(workflow + "-1")
	longest := map[string]int{} // of the conversation of a part that goes on
	for _, r := range stub.Seen() {
		if r.Part == "" {
			continue
		}
		out.asked, out.sent = out.asked+1, out.sent+r.Bytes
		if r.Step == 0 {
			out.talks++
			longest[r.Part] = 0
		}
		out.fresh += max(r.Bytes-longest[r.Part], 0)
		longest[r.Part] = max(longest[r.Part], r.Bytes)
	}
	return out
}

// launches counts the agents that sluice has launched for a run; the command of XG-2-end is none.
func (w *sandbox) launches(run string) int {
	w.t.Helper()
	n := 0
	for line := range strings.Lines(w.do(w.bin, "log", "--all", run, "--json")) {
		var l struct {
			Fact struct {
				Kind    string
				Offered bool
				Gate    string
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			w.t.Fatal(err)
		}
		if k := l.Fact.Kind; k == "step_launched" && !l.Fact.Offered || k == "review_started" && l.Fact.Gate == "XG-1-2" {
			n++
		}
	}
	return n
}

// TestDrivenBothWays drives the same workflow through the same troubles by sluice and by an orchestrating agent. Both come
// to the same end; what is left to a person is not the same. SLUICE_COMPARE=1 goes through all troubles and prints the
// table of docs/orchestrator.md.
func TestDrivenBothWays(t *testing.T) {
	troubles := []string{crashed}
	if os.Getenv("SLUICE_COMPARE") != "" {
		troubles = []string{calm, refused, crashed, limited}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| | driven by | agents launched | conversations | requests | sent, about | without repeats | from start to DONE | started again by a person | counted by sluice |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, trouble := range troubles {
		for _, driver := range []string{"sluice", "an agent"} {
			x := try(t, trouble, driver)
			if x.phase != engine.RunCompleted {
				t.Errorf("%s, driven by %s: the run is %s", trouble, driver, x.phase)
			}
			alone := driver == "sluice" || trouble == calm || trouble == refused
			if alone != (x.byHand == 0) {
				t.Errorf("%s, driven by %s: started again by hand %d times", trouble, driver, x.byHand)
			}
			fmt.Fprintf(&table, "| %s | %s | %d | %d | %d | %d k tokens | %d k tokens | %.1f s | %d | %d k tokens |\n", x.trouble, x.driver, x.launched, x.talks, x.asked,
				x.sent/bytesPerToken/1000, x.fresh/bytesPerToken/1000, x.took.Seconds(), x.byHand, x.known/1000)
		}
	}
	t.Logf("\n%s", &table)
}

// bytesPerToken is the usual rule of thumb: the stub has no tokenizer.
const bytesPerToken = 4

// TestOrchestratorCodex: the real codex knows sluice mcp by the lines of config.toml that `sluice help mcp` shows, takes a
// step and signals it.
func TestOrchestratorCodex(t *testing.T) {
	t.Parallel()
	say := func(turn modelstub.Turn) modelstub.Act { return modelstub.Act{Text: "It says: " + turn.Result} }
	w, _ := experiment7(t, "", func(repo string) map[string]modelstub.Part {
		parts := acts(repo, false)
		parts["codex"] = modelstub.Part{{mcpTool("next", map[string]any{"claim": true, "wait_seconds": 30}), {Bash: "true"},
			mcpTool("signal", map[string]any{"run": "exp-7-agent-1", "step": "X-1", "attempt": 1, "status": "done"}), {Play: say}}}
		return parts
	})
	help := w.do(w.bin, "help", "mcp")
	_, lines, found := strings.Cut(help, "[mcp_servers.sluice]")
	lines, _, ends := strings.Cut(lines, "\n\n")
	if !found || !ends || strings.Count(lines, "=") < 4 {
		t.Fatalf("the help shows no config.toml any more:\n%s", help)
	}
	home := ""
	for _, v := range w.env {
		if dir, ok := strings.CutPrefix(v, "CODEX_HOME="); ok {
			home = dir
		}
	}
	f, err := os.OpenFile(filepath.Join(home, "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("\n[mcp_servers.sluice]\n" + strings.ReplaceAll(lines, "/path/to/repo", w.repo) + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	w.put("repo/add.sh", "echo $(($1 + $2))\n")
	w.do(w.bin, "start", "exp-7-agent")
	if err := os.Remove(filepath.Join(w.work, "no-node/node")); err != nil { // a person starts codex by its launcher
		t.Fatal(err)
	}
	out := w.do("sh", "-c", "exec codex exec --skip-git-repo-check 'STUB:codex Take a step.' </dev/null")
	if !strings.Contains(out, `"taken":true`) {
		t.Errorf("codex has not signalled:\n%s", out)
	}
	w.eventually("X-1 has passed", func() bool {
		return strings.Contains(w.do(w.bin, "log", "--all", "exp-7-agent-1"), "X-1.1         passed")
	})
}
