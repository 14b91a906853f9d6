//go:build linux

package test

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// onAgent leaves a line with its step and its machine.
const onAgent = `set -eu
echo "$SLUICE_STEP @NAME@" >> "@RAN@"
echo "$SLUICE_STEP" > "$SLUICE_STEP.txt"
`

const onSpec = `workflow: {id: on, workspace: run, vars: {n: 7}}
steps:
  - {id: A, agent: {type: builder, prompt: Make A.}, on: [gpu], outputs: [A.txt], next_step: B}
  - {id: B, agent: {type: checker, prompt: Make B.}, on: [gpu], outputs: [B.txt], next_step: C}
  - {id: C, agent: {type: checker, prompt: Make C.}, outputs: [C.txt], next_step: D}
  - {id: D, agent: {type: builder, prompt: Make D.}, on: [big], outputs: [D.txt], next_step: E}
  - id: E
    run: 'test -s A.txt && echo "E $MACHINE $N $SLUICE_STEP" | tee E.txt'
    agent: {type: checker}
    env: {N: "${{vars.n}}"}
    on: [gpu]
    outputs: [E.txt]
    next_step: F
  - {id: F, run: [sh, -c, "exit 3"], on: [gpu], next_step: DONE}
`

const onSettings = `notify: {desktop: false}
agents: {acts: {command: [sh, "@WORK@/agent.sh"], prompt_via: file}}
roles: {"*": {agent: acts}, builder: {on: [linux]}, checker: {env: [MACHINE]}}
sandbox: {read: ["@WORK@/tools"], write: ["@DIR@"]}
`

// onMachine gives a machine its settings and its agent.
func (w *sandbox) onMachine(name, ran string) {
	w.t.Helper()
	w.env = append(w.env, "MACHINE="+name)
	w.put("config/sluice/config.yaml", strings.NewReplacer("@WORK@", w.work, "@DIR@", filepath.Dir(ran)).Replace(onSettings))
	w.put("agent.sh", strings.NewReplacer("@RAN@", ran, "@NAME@", name).Replace(onAgent))
}

// A step's own labels are added to its role's: it runs on the worker that has them all, however free
// others are. One whose labels nobody has waits, and status says for which.
func TestClusterStepOn(t *testing.T) {
	conform.Rule(t, "13-workers on step", "each step on the worker with its labels and its role's, or here without any")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 2)
	a.put("repo/.workflow/specs/on.yaml", onSpec)
	a.do("git", "add", "-A")
	a.do("git", "commit", "-q", "-m", "steps on workers")
	a.onMachine("lead", ran)
	all[0].onMachine("wide", ran)
	all[1].onMachine("gpu", ran)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id, "--slots", "8")
	all[1].workIn(servers, id, "--labels", "linux,gpu")
	eventually(t, "both workers are there", func() bool {
		out := a.do(a.bin, "workers")
		return strings.Contains(out, "gpu") && strings.Contains(out, "of 8 busy")
	})
	a.do(a.bin, "start", "on")
	eventually(t, "D waits for its labels", func() bool {
		return strings.Contains(a.do(a.bin, "status"), "no worker with the labels linux, big is there")
	})
	if got := ranLines(t, ran); got != "A gpu\nB gpu\nC lead\n" {
		t.Errorf("these steps ran:\n%s", got)
	}
	if s := a.step("D"); s.State != engine.Running || s.Attempt != 1 {
		t.Errorf("D is %s in attempt %d", s.State, s.Attempt)
	}
	all[0].stop()
	all[0].workIn(servers, id, "--labels", "linux,big")
	eventually(t, "E waits for a worker that takes commands", func() bool {
		return strings.Contains(a.do(a.bin, "status"), "no worker with the labels gpu, commands is there")
	})
	all[1].stop()
	all[1].workIn(servers, id, "--labels", "linux,gpu,commands")
	eventually(t, "F ends the run", func() bool { return a.phase() == engine.RunFailed })
	if got := ranLines(t, ran); got != "A gpu\nB gpu\nC lead\nD wide\n" {
		t.Errorf("these agents ran:\n%s", got)
	}
	for _, file := range []string{"A.txt", "B.txt", "C.txt", "D.txt"} {
		a.do("git", "cat-file", "-e", "sluice/on-1:"+file)
	}
	if got := a.do("git", "show", "sluice/on-1:E.txt"); got != "E gpu 7 E\n" {
		t.Errorf("the command of E says %q", got)
	}
	if out := a.do(a.bin, "log"); !strings.Contains(out, "exit code 3") {
		t.Errorf("F's exit code is not in the log:\n%s", out)
	}
}

// Where nobody is asked for workers, the step does not begin, and status says why.
func TestStepOnWithoutCluster(t *testing.T) {
	t.Parallel()
	w := newSandbox(t, "")
	w.onMachine("here", filepath.Join(w.work, "ran", "ran"))
	w.put("repo/.workflow/specs/on.yaml", onSpec)
	w.commit()
	w.do(w.bin, "watch", "add")
	w.boot()
	w.serves()
	w.do(w.bin, "start", "on")
	eventually(t, "status says why", func() bool {
		return strings.Contains(w.do(w.bin, "status"), "it works on a worker (on: linux, gpu), and this daemon has none: start it with --cluster")
	})
	if got := ranLines(t, filepath.Join(w.work, "ran", "ran")); got != "" {
		t.Errorf("these steps ran:\n%s", got)
	}
}
