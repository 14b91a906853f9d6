//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// unrulyTree is an agent whose processes ignore signals, take sessions of their own, lose their parents, their
// environment, their folder and their descriptors, or start the next and exit. Each says first that it is there.
const unrulyTree = `trap '' TERM HUP INT QUIT
cat >"$E2E_WORK/hop.sh" <<'END'
trap '' TERM HUP INT QUIT
[ -z "$1" ] || echo $$ >>"$1"
sleep 0.02
setsid env -i sh "$0" "" &
END
say="echo \$\$ >>$E2E_WORK/tree"
setsid sh -c "$say; while :; do sleep 0.1; done" &
(setsid sh -c "cd /; exec 0<&- 1>&- 2>&-; $say; while :; do sleep 0.1; done" &)
(setsid env -i sh -c "cd /; exec 0<&- 1>&- 2>&-; $say; while :; do sleep 1; done" &)
setsid env -i sh "$E2E_WORK/hop.sh" "$E2E_WORK/tree" &
echo $$ >>"$E2E_WORK/tree"
while :; do sleep 0.1; done
`

const unrulyCount = 5

// unruly returns the live processes of such trees, each with one of its files in its arguments.
func (w *sandbox) unruly() (live []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		for _, name := range []string{"tree", "hop.sh", "agent.sh"} {
			if strings.Contains(string(args), filepath.Join(w.work, name)) && !zombie(dir) {
				live = append(live, filepath.Base(dir)+": "+strings.ReplaceAll(string(args), "\x00", " "))
				break
			}
		}
	}
	return live
}

// endUnruly sees to it that a test that fails leaves nothing either.
func (w *sandbox) endUnruly() {
	for until := time.Now().Add(waitMost); time.Now().Before(until); {
		left := w.unruly()
		for _, p := range left {
			n, _, _ := strings.Cut(p, ":")
			if pid, err := strconv.Atoi(n); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if len(left) == 0 {
			return
		}
	}
}

// TestAbortLeavesNothing ends a run whose agent has such a tree. When the run is said to have ended, none of it is left;
// so it is where the daemon was killed before, and another one finds the tree.
func TestAbortLeavesNothing(t *testing.T) {
	conform.Rule(t, "3-engine tree", "sluice abort: nothing is left of an agent's tree, also by a daemon that did not start it")
	for _, crash := range []bool{false, true} {
		t.Run("crash="+strconv.FormatBool(crash), func(t *testing.T) {
			t.Parallel()
			w := &inboxBox{newSandbox(t, strings.Replace(quickSettings, "ACTS", "@WORK@/agent.sh", 1))}
			w.put("agent.sh", unrulyTree)
			w.put("repo/.workflow/specs/w.yaml", "workflow: {id: w}\nsteps:\n  - {id: A, agent: {type: a}, next_step: DONE}\n")
			t.Cleanup(w.endUnruly)
			w.commit()
			w.do(w.bin, "watch", "add")
			w.served()
			w.do(w.bin, "start", "w")
			eventually(t, "the tree is up", func() bool {
				told, _ := os.ReadFile(filepath.Join(w.work, "tree"))
				return strings.Count(string(told), "\n") == unrulyCount && len(w.unruly()) >= unrulyCount
			})
			if crash {
				w.kill()
				w.served()
			}
			before := time.Now()
			w.do(w.bin, "abort", "w-1", "--yes")
			phase := ""
			eventually(t, "the run has ended", func() bool {
				if r, ok := w.run(); ok {
					phase = r.Phase
				}
				return phase == "aborted"
			})
			eventually(t, "nothing of the tree is left", func() bool { return len(w.unruly()) == 0 })
			t.Logf("nothing was left %v after the command, with a second until KILL", time.Since(before))
		})
	}
}
