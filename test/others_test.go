//go:build linux

package test

import (
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

// othersSettings are those of docs/agents.md for programs whose streams are not read.
const othersSettings = `notify: {desktop: false}
settle: 200ms
kill_after: 2s
idle_timeout: 20s
restarts: 0
agents:
  qwen: {command: [qwen, --auth-type, openai, --yolo], prompt_via: stdin, env: ["OPENAI_*"]}
  gemini: {command: [gemini, -m, gemini-2.5-flash, --yolo], prompt_via: stdin, env: ["GEMINI_*", "GOOGLE_*"]}
roles: {"*": {agent: %s}}
`

// TestOthers tries qwen and gemini: SLUICE_OTHERS names a node_modules/.bin in which they are. It is no part of
// make test, as they take a minute.
func TestOthers(t *testing.T) {
	bin := os.Getenv("SLUICE_OTHERS")
	if bin == "" {
		return
	}
	for _, agent := range []string{"qwen", "gemini"} {
		for what, act := range map[string]modelstub.Act{"done": {Bash: "echo made > out.txt"}, "401": {Error: 401}, "429": {Error: 429}, "500": {Error: 500}} {
			t.Run(agent+" "+what, func(t *testing.T) {
				stub := modelstub.New(map[string]modelstub.Part{"solo": {{act, {Text: "That is all."}}}})
				t.Cleanup(stub.Close)
				w := newSandbox(t, fmt.Sprintf(othersSettings, agent))
				w.put("home/.gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`)
				w.env = append(w.env, "PATH="+filepath.Dir(w.bin)+":"+bin+":"+os.Getenv("PATH"), "HOME="+filepath.Join(w.work, "home"),
					"OPENAI_API_KEY=key", "OPENAI_BASE_URL="+stub.URL+"/v1", "OPENAI_MODEL=stub",
					"GEMINI_API_KEY=key", "GOOGLE_GEMINI_BASE_URL="+stub.URL, "GEMINI_CLI_TRUST_WORKSPACE=true")
				w.put("repo/.workflow/specs/solo.yaml", strings.Replace(soloSpec, "    signal:", "    outputs: [out.txt]\n    signal:", 1))
				began := time.Now()
				w.starts("solo")
				var run daemon.RunStatus
				w.eventually("the run has ended, or waits for a person", func() bool {
					st, ok := w.status()
					if ok && len(st.Runs) == 1 {
						run = st.Runs[0]
					}
					return !run.Ended.IsZero() || run.Paused != "" || strings.Contains(w.do(w.bin, "inbox"), "W")
				})
				end := w.do("sh", "-c", "cat .workflow/runs/solo-1/W.1/exit.json; tail -c 300 .workflow/runs/solo-1/W.1/std*")
				t.Logf("%s %s after %s: %s, %q %q\n%s", agent, what, time.Since(began).Round(time.Second), run.Phase, w.attempt().Failure, w.attempt().Broken, end)
				if (run.Phase == engine.RunCompleted) != (what == "done") {
					t.Error(run.Phase)
				}
			})
		}
	}
}
