//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/modelstub"
)

// TestRealAgentTakenOver: a real agent is taken over in the middle of a tool it runs; the command that is printed opens its own
// conversation, whether it was held by a sandbox or not; handed back, an agent goes on with the person's words.
func TestRealAgentTakenOver(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		for _, mode := range []string{"off", "on"} {
			t.Run(agent+", sandbox "+mode, func(t *testing.T) {
				t.Parallel()
				conform.Rule(t, "7-agents takeover", "the command that is told opens the real agent's own conversation")
				parts := map[string]modelstub.Part{
					"solo": {{{Bash: "touch began; sleep 300"}, {Text: "not reached"}}, {{Text: "That is all."}}},
					"more": {{{Text: "I go on."}}},
				}
				w, stub := newAgents(t, "", parts)
				if mode == "on" {
					needsCage(t)
					w.caged()
				}
				w.put("config/sluice/config.yaml", fmt.Sprintf("notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nsandbox: {mode: %s}\nagents: {claude: {command: [claude, --allowedTools, Bash]}}\nroles: {writer: {agent: %s, network: [%q]}}\n",
					mode, agent, strings.TrimPrefix(stub.URL, "http://")))
				w.solo()
				w.atWork()
				var over struct{ Session, Command string }
				if out := w.do(w.bin, "takeover", "W", "--json"); json.Unmarshal([]byte(out), &over) != nil || over.Session == "" {
					t.Fatalf("takeover: %s", out)
				}
				if private := !strings.Contains(over.Command, "_HOME=") && !strings.Contains(over.Command, "_CONFIG_DIR="); private != (mode == "on") {
					t.Errorf("sandbox %s: %s\n%s", mode, over.Command, w.do(w.bin, "status")+w.do("sh", "-c", "find "+w.state()))
				}
				if left := w.do("sh", "-c", "pgrep -af 'sleep 30[0]' | grep -F "+w.work+" || true"); left != "" {
					t.Errorf("left behind: %s", left)
				}
				// As a person would open it, but without a terminal.
				line := over.Command + ` -p "STUB:more what next?"`
				if agent == "codex" {
					line = strings.Replace(over.Command, "codex resume", "codex exec --skip-git-repo-check resume", 1) + ` "STUB:more what next?"`
				}
				line = "PATH='" + agentsBin(t) + ":" + os.Getenv("PATH") + "'; " + line + " </dev/null" // with a node, as people have it
				if out, err := w.try("sh", "-c", line); err != nil || !strings.Contains(out, "I go on.") {
					t.Fatalf("%s: %v\n%s", line, err, out)
				}
				w.do(w.bin, "handback", "W", "-m", "paint it blue")
				w.eventually("the run has ended", func() bool {
					st, ok := w.status()
					return ok && len(st.Runs) == 1 && st.Runs[0].Phase == engine.RunCompleted
				})
				more, blue := "", false
				for _, r := range stub.Seen() {
					if r.Part == "more" {
						more = r.Text
					}
					blue = blue || r.Part == "solo" && strings.Contains(r.Text, "paint it blue")
				}
				if !strings.Contains(more, "Do it.") {
					t.Errorf("it is another conversation: %.500s", more)
				}
				if !blue {
					t.Error("the agent was not told the person's words")
				}
			})
		}
	}
}

// TestRealAgentBudget: the real programs are ended by the tokens that they report while they work;
// claude ends by itself at its cost limit, and that is reported as such.
func TestRealAgentBudget(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "7-agents budgets", "a real agent is ended at its budget")
	long := modelstub.Part{{{Bash: "sleep 1.5; echo a"}, {Bash: "sleep 1.5; echo b"}, {Bash: "sleep 300"}, {Text: "not reached"}}}
	for name, c := range map[string]struct{ limits, why string }{
		"tokens": {"max_tokens: 2000", "tokens of the 2000 that role writer may use for one (max_tokens)"},
		"cost":   {"max_cost_usd: 0.001", "0.001 USD that role writer may cost for one (max_cost_usd)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newAgents(t, "agents: {claude: {command: [claude, --allowedTools, Bash]}}\nroles: {writer: {agent: claude, model: sonnet, "+c.limits+"}}\n", map[string]modelstub.Part{"solo": long})
			class, why, _ := w.classified()
			if class != engine.ClassWork || !strings.Contains(why, c.why) {
				t.Errorf("class %q, why %q\n%s\n%s", class, why, w.do(w.bin, "log", "--all"), w.do("sh", "-c", "tail -c 2000 .workflow/runs/solo-1/W.1/std*"))
			}
		})
	}
}
