//go:build linux

package test

import (
	"fmt"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/modelstub"
)

const talkSpec = `
workflow: {id: pipe}
steps:
  - id: W
    agent: {type: writer, prompt: "STUB:write Write out.txt.", session: main}
    outputs: [out.txt]
    signal: {type: stdout_exit}
    gate: G
  - id: V
    agent: {type: writer, prompt: "STUB:then Tell what you wrote.", session: main}
    signal: {type: stdout_exit}
    next_step: DONE
gates:
  - id: G
    reviewer: {level: auto, run: "sh check.sh"}
    on_pass: {next_step: V}
    on_fail: {next_step: W}
`

// TestRealSession has the real claude and codex go on in their conversation when their work is sent back, and begin a new one
// where it is gone; what a launch costs is what it has added.
func TestRealSession(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		for _, how := range []string{"goes on", "gone", "held"} {
			t.Run(agent+", "+how, func(t *testing.T) {
				t.Parallel()
				gone := strings.HasSuffix(how, "gone")
				parts := map[string]modelstub.Part{"write": {{{Bash: "printf bad > out.txt"}, {Text: "Wrote it."}}, {{Bash: "printf good > out.txt"}, {Text: "Mended."}}}}
				w, stub := newAgents(t, fmt.Sprintf("agents: {claude: {command: [claude, --allowedTools, Bash]}}\nroles: {writer: {agent: %s}}\n", agent), parts)
				if strings.HasPrefix(how, "held") {
					w.hold(stub, agent)
				}
				home := ""
				for _, v := range w.env {
					if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" && agent == "claude" {
						home = value + "/projects"
					} else if name == "CODEX_HOME" && agent == "codex" {
						home = value + "/sessions " + value + "/*.sqlite*"
					}
				}
				check := "grep good out.txt\n"
				if gone {
					check = "grep good out.txt && exit\nrm -rf " + home + "\nexit 1\n"
				}
				w.put("repo/check.sh", check)
				w.put("repo/.workflow/specs/pipe.yaml", talkSpec)
				run := w.ran("pipe")
				if run.Phase != engine.RunCompleted {
					t.Fatalf("%+v\n%s", run, w.do(w.bin, "log", "--all"))
				}
				if doctor := w.do("sh", "-c", w.bin+" doctor || true"); agent == "codex" && !strings.Contains(doctor, "bin/codex, the program behind /") || !strings.Contains(doctor, agent+" starts /") {
					t.Errorf("doctor:\n%s", doctor)
				}
				asked, whole, after := int64(0), false, 0
				for _, r := range stub.Seen() {
					if r.Part == "write" || r.Part == "then" {
						asked++
					}
					switch said := strings.Count(r.Text, "STUB:write"); r.Part {
					case "write":
						whole = whole || said == 2
					case "then":
						after = said
					}
				}
				if gone && after != 1 || !gone && after != 2 {
					t.Errorf("another step of the session knows %d tasks of the first", after)
				}
				if whole == gone {
					t.Errorf("the second attempt's request has the first's words: %v", whole)
				}
				if run.Usage.Tokens != 1050*asked || asked != 5 {
					t.Errorf("%d requests, usage %+v", asked, run.Usage)
				}
				if log := w.do(w.bin, "log", "--all"); strings.Contains(log, "session main is gone") != gone {
					t.Errorf("the log:\n%s", log)
				}
			})
		}
	}
}
