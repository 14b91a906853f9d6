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

// TestRealAgentsHeld has the real claude and codex work within the sandbox, each in either part: they write, commit, review,
// and read the feedback of a failed review; the model is all that they reach.
func TestRealAgentsHeld(t *testing.T) {
	t.Parallel()
	needsCage(t)
	for _, c := range []struct{ writer, reviewer string }{{"claude", "codex"}, {"codex", "claude"}} {
		t.Run(c.writer+" writes", func(t *testing.T) {
			t.Parallel()
			parts := map[string]modelstub.Part{"review": {judging("fail", "say good, not bad"), judging("pass", "")}}
			w, stub := newAgents(t, "", parts)
			w.caged()
			at := strings.TrimPrefix(stub.URL, "http://")
			w.put("config/sluice/config.yaml", fmt.Sprintf("notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nsandbox: {mode: on}\nroles: {writer: {agent: %s, model: big, network: [%q]}, reviewer: {agent: %s, network: [%q]}}\n", c.writer, at, c.reviewer, at))
			out := filepath.Join(w.repo, "out.txt")
			parts["write"] = modelstub.Part{{{Text: "I write.", Write: [2]string{out, "bad"}}, {Text: "Wrote it."}},
				{{Bash: "printf good > out.txt; git add -A; git -c user.name=x -c user.email=x@example.org commit -qm mended; echo planted > .workflow/specs/pipe.yaml"}, {Text: "Mended."}}}
			w.put("repo/.workflow/specs/pipe.yaml", agentsSpec)
			run := w.ran("pipe")
			if run.Phase != engine.RunCompleted {
				t.Fatalf("%+v\n%s\n%s", run, w.do(w.bin, "log", "--all"), w.do("sh", "-c", "tail -n 5 .workflow/runs/pipe-1/*/std*"))
			}
			if b, err := os.ReadFile(out); err != nil || strings.TrimSpace(string(b)) != "good" {
				t.Errorf("out.txt %q: %v", b, err)
			}
			if s := w.do("git", "log", "-1", "--format=%s"); strings.TrimSpace(s) != "mended" {
				t.Errorf("its commit is not there: %s", s)
			}
			if b, err := os.ReadFile(filepath.Join(w.repo, ".workflow/specs/pipe.yaml")); err != nil || string(b) != agentsSpec {
				t.Error("the spec was changed from inside")
			}
			told := false
			for _, r := range stub.Seen() {
				told = told || r.Part == "write" && strings.Contains(r.Text, "say good, not bad")
				if r.Part == "write" && r.Model != "big" {
					t.Errorf("the role's model is not asked for, but %s", r.Model)
				}
			}
			if !told {
				t.Error("the writer was not told what the reviewer said")
			}
			tail := w.do(w.bin, "tail", "last", "W")
			for _, want := range []string{"begins", "printf good", "Mended.", "ended: "} {
				if !strings.Contains(tail, want) {
					t.Errorf("sluice tail lacks %q:\n%s", want, tail)
				}
			}
			if run.Usage.Tokens < 4*1050 {
				t.Errorf("usage %+v", run.Usage)
			}
			if entries, _ := os.ReadDir(filepath.Join(w.work, "claude")); len(entries) > 0 {
				t.Errorf("the person's own folder of claude was written to: %v", entries)
			}
		})
	}
}
