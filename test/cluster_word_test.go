//go:build linux

package test

import (
	"strings"
	"syscall"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const wordSpec = `workflow: {id: long}
steps:
  - {id: A, run: [sh, -c, "echo A >> @RAN@"], gate: GA}
  - {id: B, run: [sh, -c, "echo B >> @RAN@"], gate: GB}
gates:
  - {id: GA, reviewer: {level: notify, run: "true"}, veto_window: 15s, on_pass: {next_step: B}, on_fail: {next_step: FAILED}}
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// phase returns the phase of the only run, as the machine knows it.
func (w *sandbox) phase() string {
	st, ok := w.status()
	if !ok || len(st.Runs) != 1 {
		return ""
	}
	return st.Runs[0].Phase
}

// gateState returns the state of a gate of the only run.
func (w *sandbox) gateState(id string) string {
	st, _ := w.status()
	for _, r := range st.Runs {
		return r.States()[id]
	}
	return ""
}

func (w *sandbox) follows() bool {
	st, ok := w.status()
	return ok && st.Cluster != nil && !st.Cluster.Leads && st.Cluster.Epoch > 0
}

// A person works at the machine that follows: what is said there is recorded by the one that leads,
// also after a takeover in which a window was about to close. Where nobody leads, it is not recorded.
func TestClusterWordAtTheFollower(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster word", "a follower forwards files and answers, and says \"recorded\" only after the leader's fact; a deposed leader answers \"not recorded, ask X\"")
	servers := natstest.Start(t, 1)
	a, b, id := twoMachinesWith(t, servers, "1", wordSpec)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.bootIn(servers, "--standby")
	eventually(t, "b follows", b.follows)
	b.do(b.bin, "start", "long")
	if b.phase() == "" {
		t.Error("what the follower has said is recorded is not in its journal")
	}
	eventually(t, "the window is open", func() bool { return b.gateState("GA") == engine.OnWindow })
	a.signal(syscall.SIGSTOP)
	eventually(t, "b leads", b.leads)
	eventually(t, "B runs, once", func() bool { return b.gateState("GB") == engine.OnHuman })
	a.signal(syscall.SIGCONT)
	eventually(t, "a follows", a.follows)
	eventually(t, "a has it", func() bool { return a.gateState("GB") == engine.OnHuman })
	a.do(a.bin, "pass", "GB", "--yes")
	if got := a.phase(); got != engine.RunCompleted {
		t.Errorf("the run is %s", got)
	}
	b.sameAsStream(servers, id)
	b.kill()
	out, err := a.try(a.bin, "start", "long")
	if err == nil || !strings.Contains(out, "ot recorded") && !strings.Contains(out, "not known whether it is recorded") {
		t.Errorf("nobody leads: %v, %s", err, out)
	}
}
