//go:build linux

package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/modelstub"
)

const verdictSpec = `
workflow: {id: pipe}
steps:
  - id: W
    run: "echo work >> out.txt"
    outputs: [out.txt]
    gate: G
gates:
  - id: G
    reviewer: {level: auto, agent_type: reviewer, prompt: "STUB:review Is it good?", rubric: [clarity]}
    on_pass: {next_step: DONE}
    on_fail: {next_step: W}
    routes: {replan: W}
`

// TestRealVerdicts: what the real claude and codex come back with where the model's words are no verdict, one that is not to
// the schema, one in the program's own field, and one in a fence; and what never becomes one.
func TestRealVerdicts(t *testing.T) {
	t.Parallel()
	full := map[string]any{"verdict": "replan", "scores": map[string]any{"clarity": 40}, "feedback": "say more", "summary": "too short",
		"findings": []any{map[string]any{"severity": "high", "file": "out.txt", "line": 3, "message": "a word is missing"}}}
	const strict = `{"verdict": "replan", "scores": {"clarity": 40}, "feedback": "say more", "summary": "too short", "findings": [{"severity": "high", "file": "out.txt", "line": 3, "message": "a word is missing"}, {"severity": null, "file": null, "line": null, "message": "and more"}]}`
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			good := modelstub.Act{Structured: full}
			if agent == "codex" {
				good = modelstub.Act{Text: strict}
			}
			w, stub := newAgents(t, fmt.Sprintf("roles: {reviewer: {agent: %s}}\n", agent), map[string]modelstub.Part{"review": {
				{{Text: "It looks fine to me."}},
				{{Text: "```json\n{\"verdict\": \"passs\", \"feedback\": \"\", \"scores\": {\"clarity\": 1}}\n```"}},
				{good, {Text: "That is all."}},
				{{Text: "Now:\n\n```json\n{\"verdict\": \"pass\", \"feedback\": \"\", \"scores\": {\"clarity\": 90}}\n```"}},
			}})
			w.put("repo/.workflow/specs/pipe.yaml", verdictSpec)
			run := w.ran("pipe")
			if run.Phase != engine.RunCompleted {
				t.Fatalf("%+v\n%s", run, w.do(w.bin, "log", "--all"))
			}
			show := w.do(w.bin, "show", "G")
			for _, want := range []string{"replan by its reviewer: say more", "high out.txt:3 (changed since) a word is missing", "pass, score 90"} {
				if !strings.Contains(show, want) {
					t.Errorf("show lacks %q:\n%s", want, show)
				}
			}
			var asked []string
			for _, r := range stub.Seen() {
				if r.Part != "review" {
					continue
				}
				asked = append(asked, r.Text)
				if agent == "claude" && !slices.Contains(r.Tools, "StructuredOutput") || agent == "codex" && (!strings.Contains(r.Schema, `"replan"`) || !strings.Contains(r.Schema, `"additionalProperties":false`)) {
					t.Errorf("no schema is asked for: %v %s", r.Tools, r.Schema)
				}
			}
			wants := []string{"Is it good?", "no JSON in the reply", `did you mean "pass"?`}
			if agent == "claude" {
				wants[1] = "StructuredOutput" // it asks once by itself
			}
			for i, want := range wants {
				if len(asked) <= i || !strings.Contains(asked[i], want) {
					t.Errorf("request %d of %d lacks %q", i, len(asked), want)
				}
			}
			if strings.Contains(asked[0], "run_started") {
				t.Error("sluice's own files stand in the diff")
			}
			if n := strings.Count(asked[2], "## What to look for"); n != 1 {
				t.Errorf("the correction is asked for in another conversation: the task stands in it %d times", n)
			}
		})
	}
}

// TestRealNoVerdict: three replies that are none, and a limit, pass nothing and fail nothing: a person is asked.
func TestRealNoVerdict(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			w, stub := newAgents(t, fmt.Sprintf("restarts: 0\nroles: {reviewer: {agent: %s}}\n", agent), map[string]modelstub.Part{"review": {{{Text: "All good! {\"verdict\": \"pass\""}}}})
			w.put("repo/.workflow/specs/pipe.yaml", verdictSpec)
			w.starts("pipe")
			w.eventually("a person is asked", func() bool { return strings.Contains(w.do(w.bin, "inbox"), "G") })
			show := w.do(w.bin, "show", "G")
			if !strings.Contains(show, "could not be read") {
				t.Errorf("show:\n%s", show)
			}
			if n := len(stub.Seen()); n < 3 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
