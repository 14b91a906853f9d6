//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/modelstub"
)

// newOpencode is a sandbox in which the real opencode works, with a stub of its model. SLUICE_OTHERS names the folder that
// has it: it is no part of make test, as each launch takes five seconds.
func newOpencode(t *testing.T, settings, config string, parts map[string]modelstub.Part) (*sandbox, *modelstub.Stub) {
	t.Helper()
	bin := os.Getenv("SLUICE_OTHERS")
	if bin == "" {
		t.Skip("SLUICE_OTHERS names no node_modules/.bin that has opencode: make others")
	}
	stub := modelstub.New(parts)
	t.Cleanup(stub.Close)
	w := newSandbox(t, "notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\n"+settings)
	w.put("opencode.json", fmt.Sprintf(`{%s"model": "stub/stub", "provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": %q, "apiKey": "key"}, "models": {"stub": {"cost": {"input": 1, "output": 10}}}}}}`, config, stub.URL+"/v1"))
	w.put("home/.local/share/opencode/auth.json", "{}")
	w.env = append(w.env, "PATH="+filepath.Dir(w.bin)+":"+bin+":"+os.Getenv("PATH"), "HOME="+filepath.Join(w.work, "home"), "OPENCODE_CONFIG="+filepath.Join(w.work, "opencode.json"))
	return w, stub
}

// TestOthersOpencodeEnds: each end of the real opencode has its class.
func TestOthersOpencodeEnds(t *testing.T) {
	const silent = "idle_timeout: 20s\n"
	for name, c := range map[string]struct {
		settings, config string
		act              modelstub.Act
		class, why       string
	}{
		"done":            {"", "", modelstub.Act{Bash: "echo made > out.txt"}, "", ""},
		"401":             {"", "", modelstub.Act{Error: 401}, engine.ClassFatal, "401"},
		"404":             {"", "", modelstub.Act{Error: 404}, engine.ClassFatal, "404"},
		"429":             {silent, "", modelstub.Act{Error: 429}, engine.ClassInfrastructure, "idle_timeout"},
		"500":             {silent, "", modelstub.Act{Error: 500}, engine.ClassInfrastructure, "idle_timeout"},
		"says nothing":    {silent, "", modelstub.Act{Hang: true}, engine.ClassInfrastructure, "idle_timeout"},
		"denied":          {"", `"permission": {"bash": "ask"}, `, modelstub.Act{Bash: "echo made > out.txt"}, engine.ClassWork, "not allowed to use bash"},
		"prompt too long": {"", "", modelstub.Act{Error: 400, Code: "context_length_exceeded", Message: "maximum context length"}, engine.ClassWork, "context"},
		"unknown option":  {"agents: {opencode: {command: [opencode, run, --no-such-option]}}\n", "", modelstub.Act{Text: "x"}, engine.ClassInfrastructure, "before it began"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newOpencode(t, c.settings+"roles: {writer: {agent: opencode}}\n", c.config, map[string]modelstub.Part{"solo": {{c.act, {Text: "that is all"}}}})
			class, why, _ := w.classified()
			if c.settings != silent { // it prints nothing
				w.record("opencode "+name, c.class, c.why)
			}
			if class != c.class || !strings.Contains(why, c.why) {
				t.Errorf("class %q, want %q; why %q, want %q\n%s", class, c.class, why, c.why, w.do("sh", "-c", "tail -c 2000 .workflow/runs/solo-1/W.1/std*"))
			}
		})
	}
}

// TestOthersOpencode has the real opencode write and review in one conversation each, alone and held by the sandbox: a verdict
// sends the work back, and what each launch used is counted once.
func TestOthersOpencode(t *testing.T) {
	for _, how := range []string{"alone", "held"} {
		t.Run(how, func(t *testing.T) {
			w, stub := newOpencode(t, "roles: {writer: {agent: opencode}, reviewer: {agent: opencode}}\n", "", map[string]modelstub.Part{
				"write":  {{{Bash: "printf bad > out.txt"}, {Text: "Wrote it."}}, {{Bash: "printf good > out.txt"}, {Text: "Fixed it."}}},
				"review": {{{Text: verdict("fail", "it says bad")}}, {{Bash: "cat out.txt"}, {Text: verdict("pass", "")}}},
			})
			if how == "held" {
				w.hold(stub, "opencode")
				host := strings.TrimPrefix(stub.URL, "http://")
				w.put("config/sluice/config.yaml", fmt.Sprintf("notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nsandbox: {mode: on}\nroles: {\"*\": {agent: opencode, network: [%q]}}\n", host))
			}
			w.put("repo/.workflow/specs/pipe.yaml", strings.Replace(agentsSpec, "agent: {type: writer,", "agent: {type: writer, session: main,", 1))
			run := w.ran("pipe")
			if run.Phase != engine.RunCompleted || w.do("cat", "out.txt") != "good" {
				t.Fatalf("%+v\n%s", run, w.do(w.bin, "log", "--all"))
			}
			knows, asked := false, int64(0)
			for _, r := range stub.Seen() {
				asked++
				knows = knows || r.Part == "write" && strings.Count(r.Text, "STUB:write") == 2
			}
			if !knows {
				t.Error("the second attempt is another conversation")
			}
			if run.Usage.Tokens != 1050*asked || asked != 7 {
				t.Errorf("%d requests, usage %+v", asked, run.Usage)
			}
			if cost := 0.0015 * float64(asked); run.Usage.CostUSD < cost-1e-6 || run.Usage.CostUSD > cost+1e-6 {
				t.Errorf("usage %+v, want %.4f USD", run.Usage, cost)
			}
		})
	}
}
