//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/setup"
)

const saidSpec = `workflow: {id: w, workspace: run}
steps:
  - {id: A, run: ["sh", "./say.sh", "9 are well", "1 is broken"], next_step: B}
  - {id: B, when: steps.A.stdout contains "broken", run: "echo work > out.txt", outputs: [out.txt], gate: G}
gates:
  - {id: G, reviewer: {level: auto, agent_type: reviewer}, on_pass: {next_step: DONE}, max_failures: 1, on_exhausted: FAILED}
`

// say.sh says two things, and its disk has no room for the second. Asked again, it says that one.
const sayScript = `#!/bin/sh
said=HERE/said-${SLUICE_GATE:-$SLUICE_STEP}
if [ ! -e "$said" ]; then
	touch "$said"
	echo "$1"
	sleep 0.3 # it is on the disk
	cat /dev/zero > RUNS/hog 2> /dev/null
	printf '%9000s\n' "$2"
	sleep 0.3
	rm RUNS/hog
else
	echo "$2"
fi
`

// TestLostWordsDecideNothing: where the disk of the runs is full while a reviewer or a command speaks, what is left of
// its words is not taken for all of them.
func TestLostWordsDecideNothing(t *testing.T) {
	t.Parallel()
	if !ownMounts(t) {
		return
	}
	w := newWorld(t, true)
	here := filepath.Dir(w.dir)
	runs := filepath.Join(w.dir, ".workflow", "runs")
	w.write(".workflow/specs/w.yaml", saidSpec)
	w.write(".workflow/.gitignore", setup.Ignored)
	w.write(".workflow/config.yaml", `agents: {mine: {command: [sh, ./say.sh, 'A draft: {"verdict": "pass", "feedback": "draft"}',
  '{"verdict": "fail", "feedback": "it has a bug"}']}}
roles: {"*": {agent: mine}}
`)
	w.write("say.sh", strings.NewReplacer("HERE", here, "RUNS", runs).Replace(sayScript))
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	if err := os.MkdirAll(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", runs, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Skipf("kernel: tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(runs, syscall.MNT_DETACH) })
	code, out := w.binary(filepath.Join(binDir(t), "sluice"), "run", "w")
	for _, want := range []string{"launched again", "reviewer: fail: it has a bug", "run failed"} {
		if code == 0 || !strings.Contains(out, want) {
			t.Errorf("%d, without %q:\n%s", code, want, out)
		}
	}
}
