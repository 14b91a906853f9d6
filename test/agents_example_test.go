//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/modelstub"
)

// TestRealAgentsExample has the real claude and codex go through the annotated example of document 004, unchanged, each in
// either part, held by the sandbox: a failed review and a retry that reads its words, a notice with its window, the daemon
// killed while an agent works, a person's pass file, DONE, and a record that verifies.
func TestRealAgentsExample(t *testing.T) {
	t.Parallel()
	needsCage(t)
	spec, err := os.ReadFile("../specs/testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ writer, reviewer string }{{"claude", "codex"}, {"codex", "claude"}} {
		t.Run(c.writer+" writes", func(t *testing.T) {
			t.Parallel()
			const run = "phase-4-search-index-1"
			signal := `; printf '{"status": "done", "summary": "it is there"}' >"$SLUICE_SIGNAL.tmp" && mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"`
			parts := map[string]modelstub.Part{
				"tests": {
					{{Text: "I write the tests.", Bash: `mkdir -p test && echo "def test_one(): pass" >test/test_index.py` + signal}, {Text: "Written."}},
					{{Bash: `echo "def test_empty(): pass" >>test/test_index.py` + signal}, {Text: "The empty query is tested now."}},
				},
				"judge": {judging("fail", "test the empty query too"), judging("pass", "")},
				"build": {{{Bash: `touch ../.workflow/runs/` + run + `/files/at-work; until [ -e ../.workflow/runs/` + run + `/files/go ]; do sleep 0.1; done; mkdir -p src/chatcat && echo "x = 1" >src/chatcat/index.py && echo "y = 1" >src/chatcat/search.py` + signal}, {Text: "Built."}}},
			}
			w, stub := newAgents(t, "", parts)
			w.caged()
			at := strings.TrimPrefix(stub.URL, "http://")
			w.put("config/sluice/config.yaml", fmt.Sprintf("notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nveto_window: 300ms\nsandbox: {mode: on}\nroles: {reviewer: {agent: %s, network: [%q]}, \"*\": {agent: %s, network: [%q]}}\n", c.reviewer, at, c.writer, at))
			w.put("repo/.workflow/specs/phase-4-search-index.yaml", string(spec))
			for role, part := range map[string]string{"test-writer": "tests", "implementor": "build", "reviewer": "judge"} {
				w.put("repo/.workflow/prompts/"+role+".md", "STUB:"+part+" You are the "+role+".\n")
			}
			w.put("repo/phase-4/CLAUDE.md", "Read the plan.\n")
			w.put("repo/docs/plans/phase-4-plan.md", "An index.\n")
			w.put("tools/pixi", "#!/bin/sh\ngrep -q test_empty test/test_index.py && test -s src/chatcat/index.py\n")
			if err := os.Chmod(filepath.Join(w.work, "tools/pixi"), 0o755); err != nil {
				t.Fatal(err)
			}
			for i, v := range w.env {
				if rest, ok := strings.CutPrefix(v, "PATH="); ok {
					w.env[i] = "PATH=" + filepath.Join(w.work, "tools") + ":" + rest
				}
			}
			w.starts("phase-4-search-index")
			files := filepath.Join(w.repo, ".workflow/runs", run, "files")
			eventually(t, "the implementor works", func() bool { _, err := os.Stat(filepath.Join(files, "at-work")); return err == nil })
			w.kill()
			w.put("repo/.workflow/runs/"+run+"/files/go", "")
			w.boot()
			w.serves()
			eventually(t, "a person is asked", func() bool { return w.asked("XG-2-end") })
			w.put("repo/.workflow/signals/XG-2-end-pass", "looks good\n")
			eventually(t, "the run is over", func() bool { st, ok := w.status(); return ok && len(st.Runs) == 1 && !st.Runs[0].Live() })
			st, _ := w.status()
			log := w.do(w.bin, "log", "--all", "last")
			if st.Runs[0].Phase != engine.RunCompleted {
				t.Fatalf("it has ended as %s\n%s", st.Runs[0].Phase, log)
			}
			for _, want := range []string{"test the empty query too", "goes on unless you veto", "XG-2-end #1  passed by"} {
				if !strings.Contains(strings.Join(strings.Fields(log), " "), strings.Join(strings.Fields(want), " ")) {
					t.Errorf("the log lacks %q:\n%s", want, log)
				}
			}
			asked := 0
			for _, r := range stub.Seen() {
				if r.Part == "build" && r.Step == 0 {
					asked++
				}
			}
			if asked != 1 || strings.Contains(log, "launched again") {
				t.Errorf("an agent was launched again, or asked %d times:\n%s", asked, log)
			}
			if !slices.ContainsFunc(stub.Seen(), func(r modelstub.Request) bool {
				return r.Part == "tests" && strings.Contains(r.Text, "test the empty query too")
			}) {
				t.Error("the retry was not told what the reviewer said")
			}
			if i := slices.IndexFunc(st.Runs[0].Steps, func(s daemon.StepStatus) bool { return s.ID == "X-1" }); i < 0 || st.Runs[0].Steps[i].Attempt != 2 {
				t.Errorf("%+v", st.Runs[0].Steps)
			}
			if st.Runs[0].Usage.Tokens == 0 {
				t.Error("nothing was counted")
			}
			w.do(w.bin, "audit", "verify")
		})
	}
}
