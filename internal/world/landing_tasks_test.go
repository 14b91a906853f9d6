//go:build linux

package world

import (
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
)

const (
	landTasksSpec = `
workflow: {id: w, workspace: run, on_done: {land: squash}}
steps:
  - {id: P, agent: {type: writer, prompt: plan}, gate: G}
  - {id: work, workflow: task, for_each: {tasks: to-do.json, attempts: 1}, next_step: DONE}
gates:
  - {id: G, reviewer: {level: auto, run: "true"}, on_pass: {next_step: work}}
`
	landTaskSpec = `
workflow: {id: task}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: H}
gates:
  - {id: H, reviewer: {level: auto, run: "VERDICT"}, on_pass: {next_step: DONE}, on_fail: {next_step: DONE}}
`
)

// TestLandingCountsTasks: what the gates of tasks have judged is judged: it lands, with their passes named, and lands not where
// they have refused it.
func TestLandingCountsTasks(t *testing.T) {
	planned := landTasksSpec
	alone := strings.NewReplacer("  - {id: P, agent: {type: writer, prompt: plan}, gate: G}\n", "", `gates:
  - {id: G, reviewer: {level: auto, run: "true"}, on_pass: {next_step: work}}
`, "").Replace(planned)
	for _, c := range []struct{ name, spec, verdict, script, why string }{
		{"planned", planned, "true", "true", ""},
		{"alone", alone, "true", "true", ""},
		{"refused", alone, "false", "git config user.name A; git config user.email a@example.org; git add -A; git commit -qm bad", "is not what a gate of w-1 has passed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, strings.Replace(landTaskSpec, "id: task", "id: w", 1))
			b.hold(false)
			b.script("one", `case $SLUICE_STEP in P) echo plan >plan.txt;; *) echo "$SLUICE_TASK" >"$SLUICE_TASK.txt"; `+c.script+`;; esac`)
			b.put(".workflow/specs/w.yaml", c.spec)
			b.put(".workflow/specs/task.yaml", strings.Replace(landTaskSpec, "VERDICT", c.verdict, 1))
			pinned, faults := specs.Pin(b.root, "w.yaml", []byte(c.spec), nil)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			b.put("to-do.json", `{"tasks": [{"id": "T1", "title": "one"}, {"id": "T2", "title": "two"}]}`)
			b.sh("git config user.name Ann; git config user.email ann@example.org; git add -A && git commit -qm spec")
			cl, _ := b.loop()
			b.start(cl, string(pinned))
			eventually(t, "the run is over", func() bool { return b.status(cl).Phase != engine.RunRunning })
			if why := b.status(cl).EndWhy; !strings.Contains(why, c.why) || c.why == "" && why != "" {
				t.Errorf("it ended with %q", why)
			}
			files := b.sh("git ls-tree --name-only main")
			if got := strings.Contains(files, "T1.txt") && strings.Contains(files, "T2.txt"); got != (c.why == "") {
				t.Errorf("main has\n%s", files)
			}
			if log := b.sh("git log -1 --format=%B main"); c.why == "" && !strings.Contains(log+"\n", "\nSluice-Gate: H pass by reviewer (2 times)\n") {
				t.Errorf("the commit says\n%s", log)
			}
		})
	}
}
