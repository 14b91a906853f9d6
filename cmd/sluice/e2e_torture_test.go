//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/conform"
)

// The torture kills the real daemon with -9 at random moments of real runs, again and again, and starts it anew. A person
// answers meanwhile. SLUICE_TORTURE says how often, SLUICE_TORTURE_SEED which moments.
const (
	tortureKills  = 25
	tortureAlive  = 900 // ms that a daemon lives at most
	tortureAtOnce = 3   // runs that are alive at the same time
)

// tortureSpec has what can be lost, doubled or changed: failures with retries, a notice, a human gate, branches, a join.
const tortureSpec = `workflow: {id: %[1]s}
steps:
  - {id: A, agent: {type: a, worktree: %[1]s-a/}, gate: GA, outputs: [a.txt]}
  - {id: B, agent: {type: a, worktree: %[1]s-b/}, signal: {type: sentinel_file}, gate: GB}
  - {id: C, agent: {type: a, worktree: %[1]s-c/}, signal: {type: git_commit}, gate: GC}
  - {id: D, agent: {type: a}, gate: GD}
gates:
  - {id: GA, reviewer: {level: auto, agent_type: r}, on_pass: {next_step: [B, C]}, max_retries: 3}
  - {id: GB, reviewer: {level: notify, agent_type: r}, veto_window: 50ms, on_pass: {next_step: D}}
  - {id: GC, reviewer: {level: human}, on_pass: {next_step: D}}
  - {id: GD, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

// tortureAgent appends what it is to a file while it holds a lock of its launch's name: two of a launch would meet there.
const tortureAgent = `who=${SLUICE_GATE:-$SLUICE_STEP}
key=$SLUICE_RUN.$who.$SLUICE_ATTEMPT
exec 9>"$E2E_WORK/locks/$SLUICE_TOKEN"
flock -n 9 || { echo "two alive: $key" >>"$E2E_WORK/broken"; exit 1; }
echo "$key $SLUICE_TOKEN $$" >>"$E2E_WORK/launches"
sleep 0.$(($$ % 5)) # some outlive the daemon that started them
case "$who.$SLUICE_ATTEMPT" in
A.*) echo "$SLUICE_ATTEMPT" >>a.txt ;;
GA.1) echo '{"verdict": "fail", "feedback": "once more"}' ;;
G*) echo '{"verdict": "pass"}' ;;
B.*) printf '{"status": "done"}' >"$SLUICE_SIGNAL" ;;
C.*) git -c user.name="$key" commit -q --allow-empty -m "c $SLUICE_ATTEMPT [GATE:GC]" ;;
esac
`

type torture struct {
	*sandbox
	rnd *rand.Rand
}

func newTorture(t *testing.T, seed uint64) *torture {
	t.Helper()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs: flock (apt-get install util-linux)")
	}
	settings := strings.Replace(quickSettings, "ACTS", "@WORK@/agent.sh", 1) + "max_parallel: 4\n"
	x := &torture{sandbox: newSandbox(t, settings), rnd: rand.New(rand.NewPCG(seed, 1))}
	x.put("agent.sh", tortureAgent)
	x.put("locks/.keep", "")
	for i := range tortureAtOnce {
		id := fmt.Sprintf("t%d", i)
		x.put("repo/.workflow/specs/"+id+".yaml", fmt.Sprintf(tortureSpec, id))
	}
	x.commit()
	x.do(x.bin, "watch", "add")
	return x
}

// person answers gates that wait, by file or by command, and starts runs; told are the answers that were acknowledged.
func (x *torture) person(told map[string]string, more bool) {
	st, ok := x.status()
	if !ok {
		return
	}
	alive := map[string]bool{}
	for _, r := range st.Runs {
		if !live(r) {
			continue
		}
		alive[r.Workflow] = true
		for _, g := range gatesOfRun(r) {
			if g.State != "human" {
				continue
			}
			outcome, round := "pass", fmt.Sprintf("%s/%s#%d", r.ID, g.ID, g.Round)
			if g.ID == "GC" && g.Round == 1 && x.rnd.IntN(2) == 0 {
				outcome = "fail"
			}
			if _, err := x.try(x.bin, outcome, g.ID, "--run", r.ID, "--round", strconv.Itoa(g.Round), "-m", "as told in round "+round); err == nil && told[round] == "" {
				told[round] = outcome
			}
		}
	}
	for i := range tortureAtOnce {
		if id := fmt.Sprintf("t%d", i); more && !alive[id] {
			_, _ = x.try(x.bin, "start", id) // refused where the daemon was just killed
			return
		}
	}
}

func torturedKills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLUICE_TORTURE")
	if text == "" {
		return tortureKills
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_TORTURE=%q: want a number", text)
	}
	return n
}

func TestTorture(t *testing.T) {
	conform.Rule(t, "3-engine crash", "whenever the daemon is killed: no outcome of a gate is lost, doubled or changed, no launch lives twice, every run ends")
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TORTURE_SEED=%d", seed)
	x := newTorture(t, seed)
	told := map[string]string{}
	for range torturedKills(t) {
		x.boot()
		for until := time.Now().Add(time.Duration(x.rnd.IntN(tortureAlive)) * time.Millisecond); time.Now().Before(until); time.Sleep(pollEvery) {
			x.person(told, true)
		}
		x.kill()
	}
	x.boot()
	eventually(t, "every run ends", func() bool {
		x.person(told, false)
		st, ok := x.status()
		return ok && len(st.Runs) > 0 && !slices.ContainsFunc(st.Runs, live)
	})
	x.check(told)
}

// check looks at what is left: the record, the launches, the processes.
func (x *torture) check(told map[string]string) {
	t := x.t
	t.Helper()
	st, _ := x.status()
	for _, r := range st.Runs {
		if r.Phase != "completed" {
			t.Errorf("%s is %s: %s", r.ID, r.Phase, r.EndWhy)
		}
	}
	eventually(t, "no process is left but the daemon", func() bool {
		left := processesOf(x.work)
		return len(left) == 1 && left[0] == x.last.Process.Pid
	})
	if err := x.last.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := x.last.Wait(); err != nil {
		t.Errorf("the daemon ends with %v", err)
	}
	x.last = nil
	if out, err := x.try(x.bin, "audit", "verify"); err != nil {
		t.Errorf("the record: %v\n%s", err, out)
	}
	if b, err := os.ReadFile(filepath.Join(x.work, "broken")); err == nil {
		t.Errorf("%s", b)
	}
	x.checkRounds(told)
	x.checkLaunches()
	t.Logf("%d runs, %d answers", len(st.Runs), len(told))
}

// checkRounds holds the journal's outcomes against what was answered: each round has one, and it is the one told.
func (x *torture) checkRounds(told map[string]string) {
	t := x.t
	t.Helper()
	ended := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(x.do(x.bin, "log", "--json")), "\n") {
		var l struct {
			Fact struct {
				Kind, Run, Gate, Outcome string
				N                        int
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		f := l.Fact
		if f.Kind != "round_passed" && f.Kind != "round_failed" {
			continue
		}
		round := fmt.Sprintf("%s/%s#%d", f.Run, f.Gate, f.N)
		if ended[round] != "" {
			t.Errorf("%s has two outcomes: %s and %s", round, ended[round], f.Kind)
		}
		ended[round] = f.Kind
	}
	for round, outcome := range told {
		if want := map[string]string{"pass": "round_passed", "fail": "round_failed"}[outcome]; ended[round] != want {
			t.Errorf("%s was acknowledged as %s; the record has %q", round, outcome, ended[round])
		}
	}
	if len(ended) == 0 {
		t.Error("no round has an outcome: nothing was tortured")
	}
}

// checkLaunches sees to it that each launch (a token each) was made once.
func (x *torture) checkLaunches() {
	t := x.t
	t.Helper()
	data, err := os.ReadFile(filepath.Join(x.work, "launches"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("launches: %q", line)
		}
		if before := seen[f[1]]; before != "" {
			t.Errorf("%s was launched twice: pid %s and %s", f[0], before, f[2])
		}
		seen[f[1]] = f[2]
	}
	t.Logf("%d launches", len(seen))
}
