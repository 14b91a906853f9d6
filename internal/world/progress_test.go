//go:build linux || darwin

package world

import (
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

const progressSpec = `
workflow: {id: w, limits: {max_same_failure: 3}}
steps:
  - id: A
    agent: {type: writer, prompt: do it, worktree: tree/, branch: work}
    outputs: [out.txt]
    GOES
    gate: G
gates:
  - id: G
    reviewer: {level: auto, agent_type: judge, prompt: look}
    on_pass: {next_step: DONE}
    on_fail: {next_step: A}
    max_retries: 5
`

// TestNoProgress: the same failure over an unchanged tree asks a person before max_retries does, with real git: whether the
// criterion, the reviewer or the agent itself says that it failed, and whether or not the first attempt committed its work. An
// agent that changes something each time is left to it.
func TestNoProgress(t *testing.T) {
	criterion := `success_criterion: "sh -c 'date +%s%N; exit 1' exits 0"`
	for name, c := range map[string]struct {
		goes, work string
		early      bool
	}{
		"criterion, nothing changes":    {criterion, `[ -e out.txt ] || echo one >out.txt`, true},
		"criterion, committed at first": {criterion, `[ -e out.txt ] || { echo one >out.txt; git add -A; git commit -qm one; }; git commit -q --allow-empty -m again; touch out.txt`, true},
		"criterion, work each time":     {criterion, `echo "$SLUICE_ATTEMPT" >>out.txt`, false},
		"criterion, new files":          {criterion, `echo one >out.txt; echo x >file-$SLUICE_ATTEMPT`, false},
		"criterion, commits each time":  {criterion, `echo one >out.txt; echo "$SLUICE_ATTEMPT" >n.txt; git add -A; git commit -qm "$SLUICE_ATTEMPT"`, false},
		"reviewer, nothing changes":     {"", `[ -e out.txt ] || echo one >out.txt`, true},
		"the agent says so":             {"signal: {type: sentinel_file}", `echo '{"status":"failed","summary":"cannot do it"}' >../signal; mv ../signal "$SLUICE_SIGNAL"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Rule(t, "field asks 14", "no progress, told by real git, asks a person early")
			source := strings.Replace(progressSpec, "GOES", c.goes, 1)
			b := newBench(t, source)
			b.script("one", `if [ "$SLUICE_ROLE" = judge ]; then echo "{\"verdict\":\"fail\",\"feedback\":\"not at line $SLUICE_ROUND\"}"; exit; fi
git config user.name A; git config user.email a@example.org
echo x >>../launches
`+c.work)
			b.put(".workflow/specs/w.yaml", source)
			cl, _ := b.loop()
			b.start(cl, source)
			why := ""
			eventually(t, "a person is asked", func() bool {
				s := b.status(cl)
				if s.Phase != engine.RunRunning {
					t.Fatalf("%+v", s)
				}
				why = s.Steps[0].Gates[0].Why
				return s.Steps[0].Gates[0].State == engine.OnHuman
			})
			launches := strings.Count(b.get("launches"), "x")
			if early := strings.Contains(why, "no progress"); early != c.early || early && launches != 3 || !early && launches != 6 && launches != 5 {
				t.Errorf("after %d launches: %s", launches, why)
				_ = cl.Facts(b.ctx(), "", 1, false, func(l daemon.Line) error { t.Logf("%.400s", l.Fact); return nil })
			}
		})
	}
}
