package specs

import (
	"strings"
	"testing"

	"sluice/tools/conform"
)

const readsSpec = `workflow: {id: w}
steps:
  - {id: a, agent: {type: dev}, next_step: [r1, r2]}
  - id: r1
    agent: {type: looker, reads: true%AGENT%}
    outputs: [%OUT%]
    success_criterion: [%CRIT%]
    signal: {type: %SIG%}
    next_step: DONE
  - {id: r2, agent: {type: looker, reads: true}, next_step: DONE}
`

// TestReads: a step that only looks leaves nothing but its answer, its signal and what sluice
// writes below .workflow/.
func TestReads(t *testing.T) {
	conform.Rule(t, "13-law reads faults", "\"steps with `agent: {reads: true}`\": a plain output, one outside .workflow/, a branch, a commit or pull request as signal, `folder: true` and an offered launch are load errors with a reason")
	good := map[string]string{"AGENT": "", "OUT": "{.workflow/runs/x.json: answer}", "CRIT": "make test exits 0", "SIG": "stdout_exit"}
	load := func(key, value string) (out []string) {
		text := readsSpec
		for k, v := range good {
			if k == key {
				v = value
			}
			text = strings.ReplaceAll(text, "%"+k+"%", v)
		}
		spec, faults := Load("w.yaml", []byte(text))
		for _, f := range faults {
			out = append(out, f.Error())
		}
		if len(out) == 0 && (!spec.Step("r1").Reads() || spec.Step("a").Reads() || !spec.Looked) {
			t.Errorf("%s: %+v", value, spec.Step("r1").Agent)
		}
		return out
	}
	for _, c := range [][2]string{{"", ""}, {"AGENT", ", worktree: wt/a, session: s"}, {"SIG", "sentinel_file"}} {
		if faults := load(c[0], c[1]); len(faults) > 0 {
			t.Errorf("%q: %q", c, faults)
		}
	}
	for _, c := range [][3]string{
		{"OUT", "x.json", `outputs: "x.json": it only looks (agent.reads), and nothing that it leaves in its folder is taken: give it an answer`},
		{"OUT", "{x.json: answer}", "have sluice write it below .workflow/"},
		{"OUT", "{.workflow/../x.json: answer}", "have sluice write it below .workflow/"},
		{"AGENT", ", worktree: wt/a, branch: b", `branch "b": it only looks`},
		{"AGENT", ", launch: interactive", "launch: \"interactive\": it only looks"},
		{"SIG", "git_commit", "signal: git_commit: it only looks"},
		{"SIG", "pr_creation", "signal: pr_creation: it only looks"},
		{"CRIT", "{run: x, folder: true}", "folder: true: it only looks"},
		{"AGENT", "e", "reads: want true or false"},
	} {
		if faults := strings.Join(load(c[0], c[1]), "\n"); !strings.Contains(faults, c[2]) {
			t.Errorf("%s: %q, want %q", c[1], faults, c[2])
		}
	}
}

// TestReadersInOneFolder: there is no note that they wait for each other or for a worker there; a
// step that could only look is reported.
func TestReadersInOneFolder(t *testing.T) {
	const spec = `workflow: {id: w}
steps:
  - {id: a, agent: {type: dev}, next_step: [b, r1, r2]}
  - {id: b, agent: {type: dev}, next_step: DONE}
  - {id: r1, agent: {type: looker, %s}, next_step: DONE}
  - {id: r2, agent: {type: looker, reads: true}, next_step: DONE}
`
	for with, want := range map[string]bool{"reads: true": false, "prompt: x": true} {
		got := false
		for _, n := range notesOf(t, strings.Replace(spec, "%s", with, 1)) {
			got = got || strings.Contains(n.Message, "share your checkout") && strings.Contains(n.Message, "reads: true for one that only looks")
		}
		if got != want {
			t.Errorf("%s: told %v", with, got)
		}
	}
}

// TestReadersOfAList: tasks that only look need no worktrees of their own.
func TestReadersOfAList(t *testing.T) {
	const spec = `workflow: {id: w}
steps:
  - {id: a, agent: {type: looker, prompt: x%s}, for_each: {tasks: t.json, max_parallel: 4}, next_step: DONE}
`
	if _, faults := Load("w.yaml", []byte(strings.Replace(spec, "%s", ", reads: true", 1))); len(faults) > 0 {
		t.Error(faults)
	}
	if _, faults := Load("w.yaml", []byte(strings.Replace(spec, "%s", "", 1))); len(faults) != 1 || !strings.Contains(faults[0].Error(), "reads: true") {
		t.Error(faults)
	}
}
