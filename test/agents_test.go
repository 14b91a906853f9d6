//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/modelstub"
)

// agentsBin is the folder of the real claude and codex, which .ci/needs installs from npm in their pinned releases.
func agentsBin(t *testing.T) string {
	t.Helper()
	dir := abs("../.cache/agents/node_modules/.bin")
	for _, name := range []string{"claude", "codex"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skipf("needs: the npm packages of claude and codex (.ci/needs installs them): %v", err)
		}
	}
	return dir
}

// newAgents is a sandbox in which the real claude and codex work, with a stub of their models. The roles are claude's but
// for those of codex.
func newAgents(t *testing.T, settings string, parts map[string]modelstub.Part) (*sandbox, *modelstub.Stub) {
	t.Helper()
	bin := agentsBin(t)
	stub := modelstub.New(parts)
	t.Cleanup(stub.Close)
	w := newSandbox(t, "notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\n"+settings)
	// With a home below the folder for temporary files, codex fails every command silently; a
	// checkout may be there.
	home, err := os.MkdirTemp("/var/tmp", "sluice-codex-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	config := fmt.Sprintf("model = \"stub\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = %q\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n", stub.URL+"/v1")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// The programs themselves are started, and not their launchers, which need this.
	noNode := filepath.Join(w.work, "no-node")
	w.put("no-node/node", "#!/bin/sh\nexit 99\n")
	w.do("chmod", "+x", filepath.Join(noNode, "node"))
	w.env = append(w.env, "PATH="+filepath.Dir(w.bin)+":"+noNode+":"+bin+":"+os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=key", "CLAUDE_CONFIG_DIR="+filepath.Join(w.work, "claude"), "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1", "CODEX_HOME="+home, "OPENAI_API_KEY=key")
	return w, stub
}

// ran starts a workflow, and waits until its run has ended.
func (w *sandbox) ran(workflow string, more ...string) daemon.RunStatus {
	w.t.Helper()
	w.starts(workflow, more...)
	var last daemon.RunStatus
	w.eventually("the run has ended", func() bool {
		st, ok := w.status()
		if !ok || len(st.Runs) == 0 {
			return false
		}
		last = st.Runs[0]
		return !last.Ended.IsZero() || last.Paused != ""
	})
	return last
}

// starts commits the repo's files, has a process serve it, and starts a workflow.
func (w *sandbox) starts(workflow string, more ...string) {
	w.t.Helper()
	w.commit()
	w.up()
	w.do(w.bin, append([]string{"start", workflow}, more...)...)
}

// up has a process serve the repo.
func (w *sandbox) up() {
	w.t.Helper()
	w.do(w.bin, "watch", "add", "--yes")
	w.boot()
	w.serves()
}

// eventually polls for a condition, as long as the journal grows; a failure has the status.
func (w *sandbox) eventually(what string, done func() bool) {
	w.t.Helper()
	seq := int64(-1)
	for until := time.Now().Add(waitMost); !done(); time.Sleep(pollEvery) {
		if time.Now().Before(until) {
			continue
		}
		st, _ := w.status()
		if st.Seq <= seq {
			w.t.Fatalf("never: %s\n%s", what, w.do(w.bin, "status"))
		}
		seq, until = st.Seq, time.Now().Add(waitMost)
	}
}

const agentsSpec = `
workflow: {id: pipe}
steps:
  - id: W
    agent: {type: writer, prompt: "STUB:write Write out.txt."}
    outputs: [out.txt]
    signal: {type: stdout_exit}
    gate: G
gates:
  - id: G
    reviewer: {level: auto, agent_type: reviewer, prompt: "STUB:review Does it say good?"}
    on_pass: {next_step: DONE}
    on_fail: {next_step: W}
    max_retries: 2
`

func verdict(word, feedback string) string {
	b, err := json.Marshal(map[string]any{"verdict": word, "feedback": feedback})
	if err != nil {
		panic(err) // two strings
	}
	return "My verdict:\n\n```json\n" + string(b) + "\n```"
}

// judging is what the model of a reviewer says: claude uses the tool for its verdict, and asks once
// again if it only says it; codex says it.
func judging(word, feedback string) []modelstub.Act {
	return []modelstub.Act{{Text: verdict(word, feedback), Structured: map[string]any{"verdict": word, "feedback": feedback}}, {Text: "That is my verdict."}}
}

const soloSpec = `
workflow: {id: solo}
steps:
  - id: W
    agent: {type: writer, prompt: "STUB:solo Do it."}
    signal: {type: stdout_exit}
    next_step: DONE
`

// solo starts the workflow solo.
func (w *sandbox) solo() {
	w.t.Helper()
	w.put("repo/.workflow/specs/solo.yaml", soloSpec)
	w.starts("solo")
}

// atWork waits until the command of solo's agent runs.
func (w *sandbox) atWork() {
	w.t.Helper()
	w.eventually("the agent's command runs", func() bool {
		_, err := os.Stat(filepath.Join(w.repo, "began"))
		return err == nil
	})
}

// classified starts the workflow solo and returns the first report of its step's end: its class (""
// if it counts as done), why, and until when it waits.
func (w *sandbox) classified() (class, why string, until time.Time) {
	w.t.Helper()
	w.solo()
	w.eventually("the step's end is classified", func() bool {
		out, err := w.try(w.bin, "log", "--all", "solo-1", "--json")
		for line := range strings.Lines(out) {
			var l struct {
				Fact struct {
					Kind      string    `json:"kind"`
					Class     string    `json:"class"`
					Why       string    `json:"why"`
					Failure   string    `json:"failure"`
					NotBefore time.Time `json:"not_before"`
				} `json:"fact"`
			}
			if err != nil || json.Unmarshal([]byte(line), &l) != nil {
				continue
			}
			switch l.Fact.Kind {
			case "step_relaunched":
				class, why, until = l.Fact.Class, l.Fact.Why, l.Fact.NotBefore
				return true
			case "step_signalled":
				if l.Fact.Failure != "" {
					class, why = engine.ClassWork, l.Fact.Failure
				}
				return true
			}
		}
		return false
	})
	return class, why, until
}

// record keeps the program's output for the tests of agents/program: SLUICE_RECORD names the folder
// (their testdata).
func (w *sandbox) record(name, class, why string) {
	w.t.Helper()
	to := os.Getenv("SLUICE_RECORD")
	if to == "" {
		return
	}
	dir := filepath.Join(w.repo, ".workflow/runs/solo-1/W.1")
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			w.t.Fatal(err)
		}
		return strings.NewReplacer(w.work, "/work", strings.ReplaceAll(w.work, "/", "-"), "-work", abs(".."), "/src").Replace(string(b))
	}
	var exit struct{ Code int }
	if err := json.Unmarshal([]byte(read("exit.json")), &exit); err != nil {
		w.t.Fatal(err)
	}
	b, err := json.MarshalIndent(map[string]any{"class": class, "why": why, "code": exit.Code, "stderr": read("stderr"), "stdout": strings.Split(strings.TrimSuffix(read("stdout"), "\n"), "\n")}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(to, strings.ReplaceAll(name, " ", "-")+".json"), append(b, '\n'), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRealAgentsEnds: an exit code says little. Each end of the real programs has its class.
func TestRealAgentsEnds(t *testing.T) {
	t.Parallel()
	hour := map[string]string{"retry-after": "3600", "x-should-retry": "false"}
	for name, c := range map[string]struct {
		agent, settings string
		act             modelstub.Act
		class, why      string
	}{
		"claude done":              {"claude", "", modelstub.Act{Text: "done"}, "", ""},
		"codex done":               {"codex", "", modelstub.Act{Text: "done"}, "", ""},
		"claude 401":               {"claude", "", modelstub.Act{Error: 401}, engine.ClassFatal, "401"},
		"codex 401":                {"codex", "", modelstub.Act{Error: 401}, engine.ClassFatal, "401"},
		"claude 404":               {"claude", "", modelstub.Act{Error: 404}, engine.ClassFatal, "404"},
		"claude 429":               {"claude", "", modelstub.Act{Error: 429, Header: hour}, engine.ClassLimit, "429"},
		"codex 429":                {"codex", "", modelstub.Act{Error: 429}, engine.ClassLimit, "429"},
		"claude 529":               {"claude", "", modelstub.Act{Error: 529}, engine.ClassInfrastructure, "529"},
		"codex 500":                {"codex", "", modelstub.Act{Error: 500}, engine.ClassInfrastructure, "high demand"},
		"codex quota":              {"codex", "", modelstub.Act{Error: 429, Code: "insufficient_quota"}, engine.ClassFatal, "uota"},
		"claude denied":            {"claude", "", modelstub.Act{Bash: "git commit --allow-empty -m x"}, engine.ClassWork, "not allowed to use Bash"},
		"claude says nothing":      {"claude", "idle_timeout: 3s\n", modelstub.Act{Silent: true}, engine.ClassInfrastructure, "idle_timeout"},
		"codex says nothing":       {"codex", "idle_timeout: 3s\n", modelstub.Act{Hang: true}, engine.ClassInfrastructure, "idle_timeout"},
		"claude prompt too long":   {"claude", "", modelstub.Act{Error: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}, engine.ClassWork, "too long"},
		"claude no credit":         {"claude", "", modelstub.Act{Error: 400, Message: "Your credit balance is too low to access the API."}, engine.ClassFatal, "redit"},
		"claude an unknown option": {"claude", "agents: {claude: {command: [claude, --no-such-option]}}\n", modelstub.Act{Text: "x"}, engine.ClassFatal, "no-such-option"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acts := []modelstub.Act{c.act, {Text: "that is all"}}
			w, _ := newAgents(t, c.settings+fmt.Sprintf("roles: {writer: {agent: %s}}\n", c.agent), map[string]modelstub.Part{"solo": {acts}})
			class, why, _ := w.classified()
			w.record(name, c.class, c.why)
			if class != c.class || !strings.Contains(why, c.why) {
				t.Errorf("class %q, want %q; why %q, want %q\n%s", class, c.class, why, c.why, w.do("sh", "-c", "tail -c 2000 .workflow/runs/solo-1/W.1/std*"))
			}
		})
	}
}
