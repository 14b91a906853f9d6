//go:build linux

package world

import (
	"strings"
	"testing"

	"sluice/engine"
)

const besideSpec = `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
  - {id: D, agent: {type: writer, prompt: do it}, needs: [], gate: H}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
  - {id: H, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: D}}
`

// TestPassBesideOtherWork: where a step's work passes while another's, made on top of it, waits for its gate, the other's next
// attempt still answers for all that did not pass.
func TestPassBesideOtherWork(t *testing.T) {
	b := newBench(t, besideSpec)
	b.hold(true)
	b.script("one", `echo "$SLUICE_STEP" >"$SLUICE_STEP.$SLUICE_ATTEMPT.txt"`)
	b.put(".workflow/specs/w.yaml", besideSpec)
	b.sh("git add -A && git commit -qm spec")
	cl, _ := b.loop()
	b.start(cl, besideSpec)
	asked := func(n int) func() bool {
		return func() bool {
			s := b.status(cl)
			if s.Phase != engine.RunRunning {
				t.Fatalf("%+v", s)
			}
			g := s.Steps[1].Gates[0]
			return g.State == engine.OnHuman && s.Steps[1].Attempt == n && (n > 1 || s.Steps[0].Gates[0].State == engine.OnHuman)
		}
	}
	say := func(gate, outcome string) {
		done, err := cl.Do(b.ctx(), engine.Answered{Run: run1, Gate: gate, Outcome: outcome, Text: "so", Written: b.e.opt.Now()}, "command")
		if err != nil || done.Ignored != "" {
			t.Fatalf("%+v %v", done, err)
		}
	}
	eventually(t, "both are done", asked(1))
	if !strings.Contains(b.sh("git ls-tree --name-only refs/sluice/taken/w-1/D.1"), "A.1.txt") {
		t.Fatal("D has not worked on top of A")
	}
	say("G", engine.OutcomePass)
	eventually(t, "A is on the branch", func() bool { return strings.Contains(b.sh("git ls-tree --name-only sluice/w-1"), "A.1.txt") })
	say("H", engine.OutcomeFail)
	eventually(t, "D is done again", asked(2))
	if diff := strings.Fields(b.sh("git diff --name-only refs/sluice/found/w-1/D.2 refs/sluice/taken/w-1/D.2")); strings.Join(diff, " ") != "D.1.txt D.2.txt" {
		t.Errorf("the second attempt's work is %q", diff)
	}
}
