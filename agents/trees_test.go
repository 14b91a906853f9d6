//go:build linux

package agents

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/health"
	"sluice/tools/conform"
)

const (
	treesShort  = 24 // in `make test`; SLUICE_TREES overrides it
	treesAtOnce = 12
	treesGrace  = 400 * time.Millisecond
	treesLate   = 15 * time.Second // until nothing is left, on a slow machine too
	treesParts  = 6                // of one tree: see unruly
	tickEvery   = 5 * time.Millisecond
)

// unruly is a tree that does everything to survive. All of it ignores TERM, HUP and INT. Each part
// has the mark in its arguments, its environment or its folder, by which the test finds it; the
// package only has the parents and, for some, the environment. $OUT/exits makes its first process
// exit.
const unruly = `
trap '' TERM HUP INT QUIT
cat > hop.sh <<'END'
trap '' TERM HUP INT QUIT
[ -n "$2" ] && : > "$2"
sleep 0.02
setsid env -i sh "$0" "$1" &
END
# in the group
(echo > up.1; while :; do sleep 0.05; done) &
# in a session of its own, and below it another one
setsid sh -c 'setsid sh -c "echo > up.2; while :; do sleep 0.05; done" & while :; do sleep 0.05; done' &
# a daemon as the books have it: twice forked, in no folder, with no descriptor
(setsid sh -c '(cd /; exec 0<&- 1>&- 2>&-; : > '$OUT'/up.3; while :; do sleep 0.05; done) & exit 0' &)
# one that has nothing of the launch: no environment, no folder, no parent
(setsid env -i sh -c 'cd /; exec 0<&- 1>&- 2>&-; : > '$OUT'/up.4; exec sleep 1000 0.'$MARK &)
# one that is another process every moment, each in a session of its own
setsid env -i sh hop.sh $MARK up.5 &
# one that holds a process of its own still, and is to be ended all the same
(echo > up.6; setsid sh -c 'kill -STOP $$; while :; do sleep 0.05; done' &)
for i in 1 2 3 4 5 6; do while [ ! -e up.$i ]; do sleep 0.01; done; done
echo up > up
while [ ! -e exits ]; do sleep 0.01; done
`

// number returns a number from the environment, or the default of `make test`.
func number(t *testing.T, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}

// unrulySpec is a launch of it, with its own mark.
func unrulySpec(t *testing.T, i int) (spec Spec, mark string) {
	t.Helper()
	spec = testSpec(t, unruly)
	mark = strconv.Itoa(os.Getpid()) + strconv.FormatInt(time.Now().UnixNano(), 10) + strconv.Itoa(i)
	spec.Key += strconv.Itoa(i)
	spec.Env = append(spec.Env, "MARK="+mark)
	spec.KillAfter = treesGrace
	t.Cleanup(func() { endTree(mark, spec.Cwd) })
	return spec, mark
}

// endTree kills the tree, so that a failing test leaves nothing either.
func endTree(mark, folder string) {
	for until := time.Now().Add(waitFor); time.Now().Before(until); {
		left := ofTree(mark, folder)
		for _, p := range left {
			name, _, _ := strings.Cut(p, ":")
			if pid, err := strconv.Atoi(name); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if len(left) == 0 {
			return
		}
	}
}

// ofTree finds live processes of a tree, without the package's own code.
func ofTree(mark, folder string) (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		env, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		if !bytes.Contains(args, []byte(mark)) && !bytes.Contains(env, []byte(mark)) && !strings.HasPrefix(cwd+"/", folder+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && runs(pid) {
			found = append(found, filepath.Base(dir)+": "+strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return found
}

// lateness measures how late plain timers fire until ctx ends: the machine's delay for everybody.
func lateness(ctx context.Context) (worst time.Duration) {
	for ctx.Err() == nil {
		before := time.Now()
		if health.Wait(ctx, tickEvery) {
			worst = max(worst, time.Since(before)-tickEvery)
		}
	}
	return worst
}

// TestTreesLeaveNothing makes many trees end at once, each in its own way: stopped by the Runner
// that started it, by a later one, or by its first process's exit; with a cgroup and without.
func TestTreesLeaveNothing(t *testing.T) {
	conform.Rule(t, "3-engine tree", "the whole tree, sessions of its own included")
	conform.Rule(t, "field ask 2", "no process stays behind")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	machine := make(chan time.Duration, 1)
	go func() { machine <- lateness(ctx) }()

	var mu sync.Mutex
	var worst time.Duration
	var all sync.WaitGroup
	room := make(chan struct{}, treesAtOnce)
	runners := []*Runner{patient(warm(t, treesAtOnce)), patient(noCgroups()), patient(newRunner())}
	n := number(t, "SLUICE_TREES", treesShort)
	for i := range n {
		spec, mark := unrulySpec(t, i)
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			late, ok := treeEnds(t, runners[i%len(runners)], spec, mark, i%4)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				worst = max(worst, late)
			}
		})
	}
	all.Wait()
	cancel()
	slow := <-machine
	t.Logf("%d trees, %d at once: nothing was left %v after the grace at the latest (a plain timer: %v late)", n, treesAtOnce, worst, slow)
	if worst > treesLate+10*slow {
		t.Errorf("something was left %v after the grace", worst)
	}
}

// patient makes the Runner wait longer for its shims: twelve trees at once end late on a slow machine.
func patient(r *Runner) *Runner {
	r.stopMargin = waitFor
	return r
}

// treeEnds starts and ends one tree, and returns how long after the grace nothing was left.
func treeEnds(t *testing.T, r *Runner, spec Spec, mark string, way int) (late time.Duration, ok bool) {
	p, err := r.Ensure(testContext(t), spec)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	for until := time.Now().Add(waitFor); !fileHas(filepath.Join(spec.Cwd, "up"), "up")(); time.Sleep(tickEvery) {
		if time.Now().After(until) {
			t.Errorf("%s is never up", spec.Key)
			return 0, false
		}
	}
	if up := ofTree(mark, spec.Cwd); len(up) < treesParts {
		t.Errorf("only %d processes are up: %v", len(up), up)
	}
	grace, before := spec.KillAfter, time.Now()
	switch way {
	case 0:
		err = p.Stop(testContext(t))
	case 1: // its first process exits, and nobody stops anything
		grace = min(grace, leftoverGrace)
		err = os.WriteFile(filepath.Join(spec.Cwd, "exits"), nil, 0o600)
	default:
		err = patient(newRunner()).Stop(testContext(t), spec)
	}
	if err != nil {
		t.Error(err)
		return 0, false
	}
	e, err := p.Wait(testContext(t))
	took := time.Since(before)
	if left := ofTree(mark, spec.Cwd); len(left) > 0 {
		t.Errorf("ended in way %d, left: %q", way, left)
	}
	if took < grace {
		t.Errorf("took %v, less than the grace of %v", took, grace)
	}
	stopped, signal := way != 1, "SIGKILL"
	if !stopped {
		signal = ""
	}
	if err != nil || e.Stopped != stopped || e.Signal != signal || e.Lost {
		t.Errorf("way %d: %+v, %v: want stopped: %v, by %q", way, e, err, stopped, signal)
	}
	return took - grace, true
}

// restless is processes that each start the next and exit.
const restless = `echo 'trap "" TERM; setsid sh $0 &' > hop.sh; for i in 1 2 3 4; do setsid sh hop.sh & done; echo up > up; sleep 1000`

// TestATreeThatNeverStandsStill uses processes that are gone before one has looked at them.
func TestATreeThatNeverStandsStill(t *testing.T) {
	spec := testSpec(t, restless)
	spec.KillAfter = treesGrace
	t.Cleanup(func() { endTree(spec.Token, spec.Cwd) })
	p := ensure(t, noCgroups(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	before := time.Now()
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("nothing was left %v after the grace", time.Since(before)-spec.KillAfter)
	if left := ofTree(spec.Token, spec.Cwd); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if e := wait(t, p); e.Lost || !e.Stopped {
		t.Errorf("%+v, want stopped", e)
	}
}

// The same after the shim was killed: only the token is left.
func TestALostTreeThatNeverStandsStill(t *testing.T) {
	spec := testSpec(t, restless)
	t.Cleanup(func() { endTree(spec.Token, spec.Cwd) })
	p := ensure(t, noCgroups(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	if err := syscall.Kill(p.id.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Lost {
		t.Errorf("%+v, want lost", e)
	}
	if left := ofTree(spec.Token, spec.Cwd); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
