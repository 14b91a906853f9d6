//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const lostSpec = `workflow: {id: lost, workspace: run, on_done: {land: squash}}
steps:
  - {id: A, agent: {type: builder, launch: headless, prompt: Make it.}, signal: {type: sentinel_file}, gate: GA}
gates:
  - {id: GA, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}, max_retries: 3}
`

// lostAgent has not ended when its signal is heard.
const lostAgent = `set -eu
echo "$SLUICE_ATTEMPT" >>"@RAN@"
wc -l <"@RAN@" >made.txt
mkdir -p "$(dirname "$SLUICE_SIGNAL")"
printf '{"step":"A","status":"done","summary":"made","token":"%s"}' "$SLUICE_TOKEN" >"$SLUICE_SIGNAL.tmp"
mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"
while test ! -e "@RAN@.go"; do sleep 0.05; done
`

// A worker is killed, with its agent, after the agent's signal was heard and before its work was
// fetched. Its launch is lost, which is no failure of the work: a step does not pass without its work.
func TestClusterWorkerLostAfterItsSignal(t *testing.T) {
	conform.Rule(t, "13-workers silent", "a step whose signal has come, and whose work has not, is done again")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 2)
	a.put("repo/.workflow/specs/lost.yaml", lostSpec)
	a.commit()
	for _, w := range all {
		w.put("agent.sh", strings.ReplaceAll(lostAgent, "@RAN@", ran))
	}
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	a.do(a.bin, "start", "lost")
	eventually(t, "its signal is heard", func() bool {
		st, ok := a.status()
		return ok && len(st.Runs) == 1 && a.step("A").State == engine.Signalled
	})
	_ = all[0].last.Process.Kill()
	_ = all[0].last.Wait()
	all[0].last = nil
	for left := processesOf(all[0].work); len(left) > 0; left = processesOf(all[0].work) {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all[1].workIn(servers, id)
	eventually(t, "the run ends", a.ended)
	a.madeBySecond()
}

// A worker is killed, its agent ends without it, and its clone is removed and made again before it starts anew. The
// work is gone with the clone, which is no failure of the step: it is launched again.
func TestClusterWorkerCloneMadeAgain(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 1)
	a.put("repo/.workflow/specs/lost.yaml", lostSpec)
	a.commit()
	w := all[0]
	w.put("agent.sh", strings.ReplaceAll(lostAgent, "@RAN@", ran))
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	w.workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	a.do(a.bin, "start", "lost")
	eventually(t, "its agent works", func() bool { return ranLines(t, ran) != "" })
	_ = w.last.Process.Kill()
	_ = w.last.Wait()
	w.last = nil
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its agent has ended", func() bool {
		_, err := os.Stat(filepath.Join(w.repo, ".workflow/runs/lost-1/A.1/exit.json"))
		return err == nil
	})
	eventually(t, "its clone is removed", func() bool { return os.RemoveAll(w.repo) == nil })
	w.clone(a)
	w.workIn(servers, id)
	eventually(t, "the run ends", a.ended)
	a.madeBySecond()
}

// madeBySecond fails unless the work of the attempt's second launch has landed, and its gate never failed.
func (w *sandbox) madeBySecond() {
	w.t.Helper()
	got, err := w.try("git", "show", "main:made.txt")
	log := w.do(w.bin, "log", "--all")
	if err != nil || got != "2\n" || w.step("A").Attempt != 1 || strings.Contains(log, "failed") {
		w.t.Errorf("%q has landed, %v:\n%s", got, err, log)
	}
}
